//! The dictionary of JSON forms (`schemas.txt`) as JSON Schema.

use serde_json::{Map, Value, json};

/// Every form.
const DICTIONARY: &str = include_str!("schemas.txt");

/// Where a document of OpenAPI 3.1 keeps its forms.
pub const PLACE: &str = "#/components/schemas/";

/// Letters, digits and dashes; begins with a letter, ends with none of the dashes.
const WORD: &str = "^[A-Za-z]([0-9A-Za-z-]*[0-9A-Za-z])?$";
/// Protocol, security and format.
const INTERFACE: &str = "^[A-Z_0-9]+-(SECURE|INSECURE)-[A-Z_0-9]+$";

/// The schemas of all forms by name.
pub fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    let lines = DICTIONARY.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let mut form: Option<(&str, &str, Vec<&str>)> = None;
    for line in lines {
        match line.strip_prefix("  ") {
            Some(member) => form.as_mut().expect("members stand below their form's name").2.push(member),
            None => {
                let (name, meaning) = line.split_once(": ").expect("a form has a name and a meaning");
                schemas.extend(form.replace((name, meaning, Vec::new())).map(object));
            }
        }
    }
    schemas.extend(form.map(object));
    schemas
}

fn object((name, meaning, members): (&str, &str, Vec<&str>)) -> (String, Value) {
    let members: Vec<Member<'_>> = members.into_iter().map(Member::parse).collect();
    let required: Vec<&str> = members.iter().filter(|member| member.is_required).map(|member| member.name).collect();
    let properties: Map<String, Value> = members.iter().map(|member| (member.name.to_owned(), member.schema())).collect();
    let mut schema = json!({"type": "object", "description": meaning, "properties": properties});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    (name.to_owned(), schema)
}

/// A member of a form, or a parameter: `NAME[?] TYPE [- meaning]`.
pub struct Member<'t> {
    /// Its name on the wire.
    pub name: &'t str,
    /// Whether it must be there.
    pub is_required: bool,
    kind: &'t str,
    meaning: Option<&'t str>,
}

impl<'t> Member<'t> {
    /// Reads one line of the dictionary.
    pub fn parse(line: &'t str) -> Self {
        let (declaration, meaning) = line.split_once(" - ").map_or((line, None), |(declaration, meaning)| (declaration, Some(meaning)));
        let (name, kind) = declaration.trim().split_once(' ').expect("a member has a name and a type");
        let optional = name.strip_suffix('?');
        Self { name: optional.unwrap_or(name), is_required: optional.is_none(), kind: kind.trim(), meaning }
    }

    /// True if it may be given several times.
    pub fn is_list(&self) -> bool {
        self.kind.starts_with('[')
    }

    /// Its JSON Schema.
    pub fn schema(&self) -> Value {
        let mut schema = schema(self.kind);
        if let Some(meaning) = self.meaning {
            schema["description"] = meaning.into();
        }
        schema
    }
}

/// The JSON Schema of a type as the dictionary writes it.
pub fn schema(kind: &str) -> Value {
    let inside = |open: &str, close: char| kind.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let Some(kind) = kind.strip_suffix("/null") {
        return nullable(schema(kind));
    }
    if let Some(row) = inside("Page[", ']') {
        let count = json!({"type": "integer", "minimum": 0, "description": "rows of the whole list"});
        return json!({"type": "object", "required": ["data", "count"], "properties": {"data": list(row), "count": count}});
    }
    if let Some(element) = inside("[", ']') {
        return list(element);
    }
    if let Some(value) = inside("{id: ", '}') {
        return json!({"type": "object", "propertyNames": {"pattern": "^[1-9][0-9]{0,17}$"}, "additionalProperties": schema(value)});
    }
    if let Some(value) = inside("{", '}') {
        return json!({"type": "object", "additionalProperties": schema(value)});
    }
    if kind.contains('|') {
        return json!({"type": "string", "enum": kind.split('|').collect::<Vec<_>>()});
    }
    match kind {
        "text" => json!({"type": "string"}),
        "name" => json!({"type": "string", "minLength": 1, "maxLength": 255}),
        "word" => json!({"type": "string", "minLength": 1, "maxLength": 63, "pattern": WORD}),
        "interface" => json!({"type": "string", "maxLength": 255, "pattern": INTERFACE}),
        "address" => json!({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}, {"format": "hostname"}]}),
        "uri" => json!({"type": "string", "maxLength": 255}),
        "key" => json!({"type": "string", "maxLength": 2047}),
        "time" => json!({"type": "string", "format": "date-time"}),
        "bool" => json!({"type": "boolean"}),
        "int" => json!({"type": "integer", "format": "int64", "minimum": i64::MIN, "maximum": i64::MAX}),
        "int32" => json!({"type": "integer", "format": "int32", "minimum": i32::MIN, "maximum": i32::MAX}),
        "number" => json!({"type": "number"}),
        "id" => json!({"type": "integer", "format": "int64", "minimum": 1, "maximum": i64::MAX}),
        "port" => json!({"type": "integer", "minimum": 0, "maximum": u16::MAX}),
        "any" => json!({}),
        form => json!({"$ref": format!("{PLACE}{form}")}),
    }
}

fn list(element: &str) -> Value {
    json!({"type": "array", "items": schema(element)})
}

fn nullable(mut schema: Value) -> Value {
    match schema.get("type").cloned() {
        Some(kind) => schema["type"] = json!([kind, "null"]),
        None => schema = json!({"anyOf": [schema, {"type": "null"}]}),
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_become_json_schema() {
        let check = |kind: &str, expected: Value| assert_eq!(schema(kind), expected, "{kind}");
        check("[text]/null", json!({"type": ["array", "null"], "items": {"type": "string"}}));
        let ids = json!({"pattern": "^[1-9][0-9]{0,17}$"});
        check("{id: bool}", json!({"type": "object", "propertyNames": ids, "additionalProperties": {"type": "boolean"}}));
        check("{bool}", json!({"type": "object", "additionalProperties": {"type": "boolean"}}));
        check("A|B/null", json!({"type": ["string", "null"], "enum": ["A", "B", null]}));
        check("Form/null", json!({"anyOf": [{"$ref": "#/components/schemas/Form"}, {"type": "null"}]}));
    }

    #[test]
    fn every_form_that_is_named_is_there() {
        let schemas = schemas();
        assert!(schemas.len() > 50, "{}", schemas.len());
        let text = Value::Object(schemas.clone()).to_string();
        for reference in text.split(PLACE).skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name} is not in the dictionary");
        }
    }
}
