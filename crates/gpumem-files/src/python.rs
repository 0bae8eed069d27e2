//! The header of an npy file: a dictionary as Python writes it.

use crate::header::MOST_AXES;

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub(crate) descr: String,
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<usize>,
}

/// What is wrong with a header, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) at: usize,
    pub(crate) why: &'static str,
}

/// Reads a header: the three keys, each once, in any order.
pub(crate) fn parse(text: &[u8]) -> Result<NpyHeader, Wrong> {
    let mut reader = Reader { text, at: 0 };
    let (mut descr, mut order, mut shape) = (None, None, None);
    reader.expect(b'{', "the header is a dictionary")?;
    while !reader.takes(b'}') {
        let at = reader.at;
        let key = reader.string()?;
        reader.expect(b':', "a colon follows a key")?;
        let is_new = match key {
            b"descr" => descr.replace(reader.descr()?).is_none(),
            b"fortran_order" => order.replace(reader.boolean()?).is_none(),
            b"shape" => shape.replace(reader.shape()?).is_none(),
            _ => return Err(Wrong { at, why: "the keys are descr, fortran_order and shape" }),
        };
        if !is_new {
            return Err(Wrong { at, why: "a key occurs twice" });
        }
        if !reader.takes(b',') {
            reader.expect(b'}', "a comma or the end follows a value")?;
            break;
        }
    }
    if reader.peek().is_some() {
        return Err(reader.wrong("spaces and a line's end follow the dictionary"));
    }
    match (descr, order, shape) {
        (Some(descr), Some(fortran_order), Some(shape)) => Ok(NpyHeader { descr, fortran_order, shape }),
        _ => Err(reader.wrong("descr, fortran_order and shape are needed")),
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Reader<'t> {
    fn wrong(&self, why: &'static str) -> Wrong {
        Wrong { at: self.at, why }
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8, why: &'static str) -> Result<(), Wrong> {
        if self.takes(byte) { Ok(()) } else { Err(self.wrong(why)) }
    }

    /// A string without escapes.
    fn string(&mut self) -> Result<&'t [u8], Wrong> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else { return Err(self.wrong("a text is in quotes")) };
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == quote) else {
            return Err(self.wrong("a text has an end"));
        };
        let text = rest.get(..length).unwrap_or_default();
        if !text.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'\\') {
            return Err(self.wrong("a name or a type has ordinary letters"));
        }
        self.at += length + 2;
        Ok(text)
    }

    fn descr(&mut self) -> Result<String, Wrong> {
        if self.peek() == Some(b'[') {
            return Err(self.wrong("records are not taken"));
        }
        Ok(String::from_utf8_lossy(self.string()?).into_owned())
    }

    fn boolean(&mut self) -> Result<bool, Wrong> {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let (value, length) = match (rest.starts_with(b"True"), rest.starts_with(b"False")) {
            (true, _) => (true, 4),
            (_, true) => (false, 5),
            _ => return Err(self.wrong("fortran_order is True or False")),
        };
        self.at += length;
        Ok(value)
    }

    /// `()`, `(3,)`, `(3, 4)`.
    fn shape(&mut self) -> Result<Vec<usize>, Wrong> {
        self.expect(b'(', "the shape is a tuple")?;
        let mut shape = Vec::new();
        let mut has_comma = true;
        while !self.takes(b')') {
            if !has_comma {
                return Err(self.wrong("a comma is between two lengths"));
            }
            if shape.len() == MOST_AXES {
                return Err(self.wrong("an array has 64 axes at most"));
            }
            shape.push(self.number()?);
            has_comma = self.takes(b',');
        }
        // In Python `(3)` is a number.
        if shape.len() == 1 && !has_comma {
            return Err(self.wrong("the shape is a tuple"));
        }
        Ok(shape)
    }

    fn number(&mut self) -> Result<usize, Wrong> {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits =
            rest.get(..length).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default();
        let is_python = digits == "0" || !digits.starts_with('0');
        match digits.parse() {
            Ok(number) if is_python => {
                self.at += length;
                Ok(number)
            }
            _ => Err(self.wrong("a length is a number that fits this machine")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(text: &str) -> Result<Vec<usize>, &'static str> {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {text}, }}");
        parse(header.as_bytes()).map(|header| header.shape).map_err(|wrong| wrong.why)
    }

    #[test]
    fn headers_of_numpy_are_read() {
        let text = b"{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }          \n";
        let header = NpyHeader { descr: "<f8".to_owned(), fortran_order: true, shape: vec![3, 4] };
        assert_eq!(parse(text), Ok(header));
        let text = br#"{"shape":(),"descr":"|u1","fortran_order":False}"#;
        let header = NpyHeader { descr: "|u1".to_owned(), fortran_order: false, shape: vec![] };
        assert_eq!(parse(text), Ok(header));
        assert_eq!(shape_of("(7,)"), Ok(vec![7]));
        assert_eq!(shape_of("( 1 , 0 , 2, )"), Ok(vec![1, 0, 2]));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["(3)", "(3 4)", "(-1,)", "(03,)", "(1.5,)", "3", "[3]", "(,)", "(3", "(99999999999999999999,)"]
        {
            assert!(shape_of(text).is_err(), "{text}");
        }
        assert!(shape_of(&format!("({})", "1,".repeat(64))).is_ok());
        assert_eq!(shape_of(&format!("({})", "1,".repeat(65))), Err("an array has 64 axes at most"));
        let whole = "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }\n";
        for end in 0..whole.len() - 2 {
            assert!(parse(&whole.as_bytes()[..end]).is_err(), "{end}");
        }
        for text in [
            "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), } x",
            "{'descr': '<f8', 'descr': '<f8', 'fortran_order': True, 'shape': ()}",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (), 'more': 1}",
            "{'descr': [('a', '<f4')], 'fortran_order': True, 'shape': ()}",
            "{'descr': '<f8', 'fortran_order': Truely, 'shape': ()}",
            "{'descr': '<\\x66', 'fortran_order': True, 'shape': ()}",
            "{'descr': '<f8'; 'fortran_order': True, 'shape': ()}",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
