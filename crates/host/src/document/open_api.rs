//! The document of a port in the forms of OpenAPI 3.1 and Swagger 2.0.

use serde_json::{Map, Value, json};

use super::{
    description::{Content, Credential, Description, Tag},
    form::{self, Member},
};
use crate::{answer, request::Method};

const ERROR: &str = "ErrorMessage";
const PROBLEM: &str = "Problem";

/// What a document is of.
pub struct Subject<'s> {
    /// Its title.
    pub title: String,
    /// In front of every path, with its slashes.
    pub base: String,
    /// Its operations.
    pub operations: &'s [Description],
}

impl Subject<'_> {
    /// Where an operation is: below the system's base path, or whole.
    pub fn path(&self, description: &Description) -> String {
        let base = if description.tag == Tag::Bodkin { "/" } else { &*self.base };
        format!("{base}{}", description.path)
    }
}

/// The document as OpenAPI 3.1.
pub fn open_api(subject: &Subject<'_>) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for description in subject.operations {
        let item = paths.entry(subject.path(description)).or_insert_with(|| json!({}));
        item[description.method.word().to_ascii_lowercase()] = operation(description);
    }
    let mut tags: Vec<&str> = subject.operations.iter().map(|description| description.tag.name()).collect();
    tags.sort_unstable();
    tags.dedup();
    let tags: Vec<Value> = tags.into_iter().map(|name| json!({"name": name})).collect();
    json!({
        "openapi": "3.1.0",
        "info": info(subject),
        "tags": tags,
        "paths": paths,
        "components": {"schemas": used_schemas(&paths), "securitySchemes": used_schemes(subject)},
    })
}

fn info(subject: &Subject<'_>) -> Value {
    let description = "In secure mode a caller shows a certificate in the TLS handshake (security); in insecure mode nothing is asked, and nobody is denied. \
        Strings are taken for numbers and booleans, and unknown members are ignored. \
        Requests of a core system that are not JSON or lack a parameter get an empty 400, other content types an empty 415, with the reason in the header Bodkin-Reason; below /api/v1 every error is a problem (RFC 9457).";
    json!({"title": subject.title, "version": env!("CARGO_PKG_VERSION"), "description": description})
}

fn operation(description: &Description) -> Value {
    let parts = description.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = parts.map(|name| {
        let kind = if matches!(name, "id" | "port") { name } else { "name" };
        json!({"name": name, "in": "path", "required": true, "schema": form::schema(kind)})
    });
    let in_query = description.parameters.iter().map(|line| {
        let member = Member::parse(line);
        json!({"name": member.name, "in": "query", "required": member.is_required, "schema": member.schema()})
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let mut operation = json!({
        "operationId": operation_id(description),
        "summary": description.summary,
        "tags": [description.tag.name()],
        "responses": responses(description, !parameters.is_empty()),
        "security": security(description.credential),
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(body) = description.body {
        operation["requestBody"] = json!({"required": true, "content": {description.media_type: {"schema": form::schema(body)}}});
    }
    operation
}

const CERTIFICATE: &str = "certificate";
const SECRET: &str = "onboardingSecret";

/// Any of these is enough in secure mode; of nothing, none is asked for.
fn security(credential: Credential) -> Value {
    match credential {
        Credential::None | Credential::Link => json!([]),
        // The secret may also be in the body.
        Credential::Grant => json!([{SECRET: []}, {CERTIFICATE: []}, {}]),
        Credential::System | Credential::Operator => json!([{CERTIFICATE: []}]),
    }
}

fn used_schemes(subject: &Subject<'_>) -> Value {
    let certificate = "The certificate of a system of this cloud, in the TLS handshake; for Management and below /api/v1 of Bodkin's own port the operator's.";
    let mut schemes = json!({CERTIFICATE: {"type": "mutualTLS", "description": certificate}});
    if subject.operations.iter().any(|row| row.credential == Credential::Grant) {
        let secret = "The secret of a grant, by which a new system comes to its first certificate.";
        schemes[SECRET] = json!({"type": "http", "scheme": "bearer", "description": secret});
    }
    schemes
}

/// `getMgmtSystemsId`: the method and the path's words.
fn operation_id(description: &Description) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    };
    let words = description.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(description.method.word().to_ascii_lowercase(), |id, word| id + &capital(word))
}

fn responses(description: &Description, takes_parameters: bool) -> Value {
    let success = match description.content {
        Content::Nothing => json!({"description": "Done."}),
        Content::Json(kind) => with_content("Done.", answer::JSON, &form::schema(kind)),
        Content::Text => with_content("Done.", "text/plain", &form::schema("text")),
        Content::Page => with_content("Done.", "text/html", &form::schema("text")),
        Content::Drawing => with_content("Done.", "image/svg+xml", &form::schema("text")),
        Content::Events => with_content("The stream, without end.", "text/event-stream", &form::schema("text")),
    };
    let mut responses = json!({ description.status.to_string(): success });
    let (media_type, kind) =
        if description.tag == Tag::Bodkin { ("application/problem+json", PROBLEM) } else { ("application/json", ERROR) };
    let error = |what: &str| with_content(what, media_type, &form::schema(kind));
    if takes_parameters || description.body.is_some() || description.method == Method::Delete {
        let is_own = description.tag == Tag::Bodkin;
        responses["400"] =
            error(if is_own { "Refused. The message says why." } else { "Refused; without a body where the request is malformed." });
    }
    if takes_parameters && description.tag == Tag::Bodkin {
        responses["404"] = error("There is no such row.");
    } else if !description.absent.is_empty() {
        responses["404"] = error(description.absent);
    }
    if !description.conflict.is_empty() {
        responses["409"] = error(description.conflict);
    }
    if (description.method == Method::Post || takes_parameters) && description.tag == Tag::Bodkin && description.body.is_none() {
        responses["409"] = error("Not while things are as they are. The message says why.");
    }
    if description.body.is_some() {
        let told = |what: &str| if description.tag == Tag::Bodkin { error(what) } else { json!({"description": what}) };
        responses["413"] = told("The body is longer than its limit.");
        responses["415"] = told("The body is not said to be of the type that is taken.");
    }
    if description.credential != Credential::None {
        responses["401"] = error("No certificate of this cloud was shown, or not one that this is for.");
    }
    if matches!(description.credential, Credential::Operator | Credential::Grant) {
        responses["403"] = error("For another system than the caller.");
    }
    if description.credential == Credential::Grant {
        responses["401"] = error("Neither a secret nor a certificate that counts was shown.");
        responses["403"] = error("Not for this caller, or not this name.");
        responses["429"] = error("Too many attempts were refused; Retry-After says when to come back.");
    }
    if description.credential == Credential::Link {
        responses["401"] = error("The link was used before, has expired, or never existed.");
        responses["403"] = error("The browser is not on the cloud's own machine.");
    }
    if description.needs_keys && description.tag == Tag::Bodkin {
        responses["409"] = error("There is no authority in insecure mode, or what was asked for is taken. The message says which.");
    }
    if description.needs_keys && description.tag != Tag::Bodkin {
        responses["500"] = error("There are no keys in insecure mode.");
    } else if description.body.is_some() || description.method == Method::Delete {
        responses["500"] = error("A text is longer than its column, or a map has a null.");
    }
    responses["503"] = error("Not now: a limit is reached, a queue is full, or the disk does not write. The message says which.");
    responses
}

fn with_content(what: &str, media_type: &str, schema: &Value) -> Value {
    json!({"description": what, "content": {media_type: {"schema": schema}}})
}

/// The forms that the paths refer to, and those that these refer to.
fn used_schemas(paths: &Map<String, Value>) -> Map<String, Value> {
    let mut all = form::schemas();
    let mut used = Map::new();
    let mut open = references(&Value::Object(paths.clone()).to_string());
    while let Some(name) = open.pop() {
        if let Some(schema) = all.remove(&name) {
            open.extend(references(&schema.to_string()));
            used.insert(name, schema);
        }
    }
    used
}

/// Names of the forms that a JSON text refers to.
fn references(text: &str) -> Vec<String> {
    text.split(form::PLACE).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// The document as Swagger 2.0, with upstream's tag `All` on every operation.
pub fn swagger(subject: &Subject<'_>) -> Value {
    let mut document = open_api(subject);
    let tags = ["All", "Client", "Management", "Private"].map(|name| json!({"name": name}));
    let mut paths = document["paths"].take();
    for item in paths.as_object_mut().expect("paths are an object").values_mut() {
        for operation in item.as_object_mut().expect("a path is an object").values_mut() {
            *operation = swagger_operation(operation.take());
        }
    }
    let mut swagger = json!({
        "swagger": "2.0",
        "info": document["info"].take(),
        "basePath": "/",
        "tags": tags,
        "paths": paths,
        "definitions": document["components"]["schemas"].take(),
    });
    rewrite_schemas(&mut swagger);
    swagger
}

fn swagger_operation(mut operation: Value) -> Value {
    operation["tags"].as_array_mut().expect("tags are a list").insert(0, "All".into());
    let mut parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    for parameter in &mut parameters {
        let schema = parameter["schema"].take();
        let members = parameter.as_object_mut().expect("a parameter is an object");
        members.remove("schema");
        members.extend(schema.as_object().expect("a schema is an object").clone());
        if members["type"] == "array" {
            members.insert("collectionFormat".into(), "multi".into());
        }
    }
    let members = operation.as_object_mut().expect("an operation is an object");
    // Swagger 2.0 has no word for a certificate.
    members.remove("security");
    let body = members.remove("requestBody");
    if let Some((media_type, inner)) = body.as_ref().and_then(|body| body["content"].as_object()?.iter().next()) {
        parameters.push(json!({"name": "body", "in": "body", "required": true, "schema": inner["schema"]}));
        members.insert("consumes".into(), json!([media_type]));
    }
    members.insert("parameters".into(), parameters.into());
    let mut produces = Vec::new();
    for response in members["responses"].as_object_mut().expect("responses are an object").values_mut() {
        let content = response.as_object_mut().expect("a response is an object").remove("content");
        if let Some((media_type, inner)) = content.as_ref().and_then(|content| content.as_object()?.iter().next()) {
            response["schema"] = inner["schema"].clone();
            produces.push(media_type.clone());
        }
    }
    produces.sort();
    produces.dedup();
    members.insert("produces".into(), produces.into());
    operation
}

/// References point to `definitions`, and what may be null says so by the usual extension.
fn rewrite_schemas(value: &mut Value) {
    if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
        value["$ref"] = reference.replace(form::PLACE, "#/definitions/").into();
    }
    if let Some(kind) = value.get("type").and_then(Value::as_array).and_then(|kinds| kinds.first()).cloned() {
        value["type"] = kind;
        value["x-nullable"] = true.into();
    }
    match value.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([of, null]) if *null == json!({"type": "null"}) => *value = json!({"allOf": [of], "x-nullable": true}),
        Some(_) => drop(value.as_object_mut().expect("a schema is an object").remove("anyOf")),
        None => {}
    }
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(rewrite_schemas),
        Value::Object(members) => members.values_mut().for_each(rewrite_schemas),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::gatekeeper;

    #[test]
    fn what_stands_in_a_path_has_the_type_that_is_taken_there() {
        let type_of = |path: &str, at: usize| {
            let description = gatekeeper::OPERATIONS.iter().find(|description| description.path == path).expect("it is described");
            operation(description)["parameters"][at]["schema"]["type"].clone()
        };
        let relay = "mgmt/relays/{address}/{port}";
        assert_eq!([type_of(relay, 0), type_of(relay, 1), type_of("mgmt/relays/{id}", 0)], ["string", "integer", "integer"]);
    }
}
