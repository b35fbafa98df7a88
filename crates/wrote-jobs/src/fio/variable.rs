//! Variables in values: `${NAME}` of the environment, and a few facts about the machine.

use super::Surroundings;

/// Replaces the variables of `value`. An unset one is an error: fio takes it for empty, and
/// `filename=${DISK}/file` becomes `/file`.
pub(super) fn substitute(value: &str, surroundings: &Surroundings<'_>) -> Result<String, String> {
    let mut result = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        result.push_str(&facts(before, surroundings));
        let Some(end) = from.find('}') else {
            return Err("the } of ${ is missing".into());
        };
        let name = &from[2..end];
        match (surroundings.environment)(name) {
            Some(found) => result.push_str(&found),
            None => return Err(format!("the environment variable {name} is not set")),
        }
        rest = &from[end + 1..];
    }
    result.push_str(&facts(rest, surroundings));
    Ok(result)
}

fn facts(text: &str, surroundings: &Surroundings<'_>) -> String {
    if !text.contains('$') {
        return text.to_string();
    }
    text.replace("$pagesize", &surroundings.page_bytes.to_string())
        .replace("$mb_memory", &surroundings.memory_mib.to_string())
        .replace("$ncpus", &surroundings.cpus.to_string())
}
