//! The filter of keys that a later version added to a result.

use serde_json::Value;
use wrote_result::document::schema;

/// Removes every key that our result's schema does not name.
pub(super) fn retain(document: &mut Value) {
    let schema = schema();
    retain_below(document, &schema, &schema["$defs"]);
}

fn retain_below(value: &mut Value, schema: &Value, definitions: &Value) {
    let schema = resolved(schema, definitions);
    match value {
        Value::Object(object) => {
            let Some(properties) = schema["properties"].as_object() else { return };
            object.retain(|key, _| properties.contains_key(key));
            for (key, value) in object {
                retain_below(value, &properties[key], definitions);
            }
        }
        Value::Array(values) => {
            values.iter_mut().for_each(|value| retain_below(value, &schema["items"], definitions));
        }
        _ => {}
    }
}

/// Follows a reference; of an optional schema returns the schema.
fn resolved<'a>(schema: &'a Value, definitions: &'a Value) -> &'a Value {
    if let Some(any) = schema["anyOf"].as_array() {
        let something = any.iter().find(|one| one["type"] != "null");
        return something.map_or(schema, |something| resolved(something, definitions));
    }
    match schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        Some(name) => resolved(&definitions[name], definitions),
        None => schema,
    }
}
