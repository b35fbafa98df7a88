//! Sample documents for schema tests.

use fixtures::judge;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns the document with one value replaced.
pub fn replaced(mut document: Value, pointer: &str, value: Value) -> Value {
    *document.pointer_mut(pointer).unwrap() = value;
    document
}

/// Removes keys of an object. All of them must exist.
pub fn remove(document: &mut Value, pointer: &str, keys: &[&str]) {
    let object = document.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
    keys.iter().for_each(|key| assert!(object.remove(*key).is_some(), "{pointer}/{key}"));
}

/// Checks that `wrote` reads these documents and writes them back unchanged.
pub fn come_back<T: Serialize + DeserializeOwned>(documents: &[Value]) {
    for document in documents {
        let read: T = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), *document);
    }
}

/// Checks that the schema accepts these documents.
pub fn are_taken(test: &str, schema: Value, documents: &[Value]) {
    let Some(complaints) = judge(test, schema, documents) else { return };
    assert_eq!(complaints, vec![""; documents.len()]);
}

/// Checks that the schema rejects each of these documents.
pub fn are_refused(test: &str, schema: Value, documents: &[Value]) {
    let Some(complaints) = judge(test, schema, documents) else { return };
    assert_eq!(complaints.len(), documents.len());
    assert!(complaints.iter().all(|complaint| !complaint.is_empty()), "{complaints:?}");
}
