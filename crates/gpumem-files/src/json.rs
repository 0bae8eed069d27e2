//! The JSON of headers. Names are kept as often as they occur, so that two of one name are found; serde's maps keep the last one.

use crate::header::MOST_AXES;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use std::{collections::BTreeMap, fmt, marker::PhantomData};

/// The header of a safetensors file.
#[derive(Debug, Default)]
pub(crate) struct Header {
    /// In the order of the text, as often as they are there.
    pub(crate) tensors: Vec<(Box<str>, Entry)>,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// What it says of a tensor. What a field of another name would mean is not known, so there may be none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) dtype: String,
    pub(crate) shape: Shape,
    pub(crate) data_offsets: (u64, u64),
}

/// An object with fields. What serde derives takes a list of their values, too.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<F: Deserializer<'de>>(from: F) -> std::result::Result<Self, F::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: DeserializeOwned> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        from.deserialize_map(Fields(PhantomData))
    }
}

/// Lengths of axes: few.
#[derive(Debug)]
pub(crate) struct Shape(pub(crate) Vec<usize>);

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<F: Deserializer<'de>>(from: F) -> std::result::Result<Self, F::Error> {
        struct Lengths;
        impl<'de> Visitor<'de> for Lengths {
            type Value = Shape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("lengths of axes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Shape, A::Error> {
                let mut shape = Vec::new();
                while let Some(length) = list.next_element()? {
                    if shape.len() == MOST_AXES {
                        return Err(A::Error::custom("more than 64 axes"));
                    }
                    shape.push(length);
                }
                Ok(Shape(shape))
            }
        }
        from.deserialize_seq(Lengths)
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<F: Deserializer<'de>>(from: F) -> std::result::Result<Self, F::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Header, A::Error> {
                let mut header = Header::default();
                let mut has_metadata = false;
                while let Some(name) = map.next_key::<String>()? {
                    if name != "__metadata__" {
                        let Object(entry) = map.next_value()?;
                        header.tensors.push((name.into(), entry));
                        continue;
                    }
                    if std::mem::replace(&mut has_metadata, true) {
                        return Err(A::Error::custom("__metadata__ occurs twice"));
                    }
                    for (name, text) in map.next_value::<Option<Pairs>>()?.map_or_else(Vec::new, |all| all.0)
                    {
                        if header.metadata.insert(name, text).is_some() {
                            return Err(A::Error::custom("two texts of __metadata__ have the same name"));
                        }
                    }
                }
                Ok(header)
            }
        }
        from.deserialize_map(Names)
    }
}

/// An index of several files.
#[derive(Debug, Deserialize)]
pub(crate) struct Index {
    pub(crate) weight_map: Pairs,
}

/// Names and what they stand for, in the order of the text: tensors with their files, texts.
#[derive(Debug)]
pub(crate) struct Pairs(pub(crate) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<F: Deserializer<'de>>(from: F) -> std::result::Result<Self, F::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("texts by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(All)
    }
}
