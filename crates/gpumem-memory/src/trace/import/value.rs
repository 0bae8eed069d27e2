//! Values of JSON and of pickles.
//!
//! A value refers to others by index. So a value that occurs many times is kept once, a cycle leaks nothing, and no depth
//! of nesting exhausts the stack of the thread that drops it.

/// A record of a snapshot has about ten fields. A search in more of them could take the square of the file's length.
const MOST_FIELDS: usize = 64;

pub(super) enum Value {
    /// Anything that no snapshot needs.
    Other,
    Number(i128),
    Text(String),
    List(Vec<u32>),
    /// Keys and values.
    Record(Vec<(u32, u32)>),
}

#[derive(Default)]
pub(super) struct Values(pub(super) Vec<Value>);

impl Values {
    /// Keeps a value, and returns its index.
    pub(super) fn add(&mut self, value: Value) -> u32 {
        self.0.push(value);
        self.0.len() as u32 - 1
    }

    /// Keeps a value of JSON, whose depth the parser limits.
    pub(super) fn add_json(&mut self, value: serde_json::Value) -> u32 {
        use serde_json::Value as Json;
        let value = match value {
            Json::Number(number) => number.as_i128().map_or(Value::Other, Value::Number),
            Json::String(text) => Value::Text(text),
            Json::Array(list) => Value::List(list.into_iter().map(|value| self.add_json(value)).collect()),
            Json::Object(fields) => {
                let mut add = |(key, value)| (self.add(Value::Text(key)), self.add_json(value));
                Value::Record(fields.into_iter().map(&mut add).collect())
            }
            Json::Null | Json::Bool(_) => Value::Other,
        };
        self.add(value)
    }

    /// The field of a record.
    pub(super) fn field(&self, record: u32, name: &str) -> Option<u32> {
        let Value::Record(fields) = &self.0[record as usize] else { return None };
        let is_it = |key: u32| matches!(&self.0[key as usize], Value::Text(text) if text == name);
        // The last of several, as in Python.
        let mut fields = fields.iter().take(MOST_FIELDS).rev();
        fields.find(|(key, _)| is_it(*key)).map(|(_, value)| *value)
    }

    /// The field of a record, if it is a number that memory can have.
    pub(super) fn number(&self, record: u32, name: &str) -> Option<u64> {
        self.as_number(self.field(record, name)?)
    }

    pub(super) fn as_number(&self, value: u32) -> Option<u64> {
        match self.0[value as usize] {
            Value::Number(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// The field of a record, if it is a text.
    pub(super) fn text(&self, record: u32, name: &str) -> Option<&str> {
        match &self.0[self.field(record, name)? as usize] {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The field of a record, if it is a list.
    pub(super) fn list(&self, record: u32, name: &str) -> Option<&[u32]> {
        self.as_list(self.field(record, name)?)
    }

    pub(super) fn as_list(&self, value: u32) -> Option<&[u32]> {
        match &self.0[value as usize] {
            Value::List(list) => Some(list),
            _ => None,
        }
    }
}
