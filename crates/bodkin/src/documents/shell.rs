//! As much of the shell's language as the documents use: words, quotes, comments, lists, redirections, here-documents.

/// What a text for a shell starts, each the words of one command.
pub fn commands(text: &str) -> Vec<Vec<String>> {
    let mut reader =
        Reader { rest: text.chars().peekable(), commands: Vec::new(), words: Vec::new(), word: None, ends: Vec::new(), skips_word: false };
    while reader.step() {}
    reader.command();
    reader.commands
}

struct Reader<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    /// The word that is read; between words none.
    word: Option<String>,
    /// Here-documents that begin with the next line, by the line that ends each.
    ends: Vec<String>,
    /// The next word is a file's name, behind a redirection.
    skips_word: bool,
}

impl Reader<'_> {
    /// Reads on; false at the end.
    fn step(&mut self) -> bool {
        let Some(c) = self.rest.next() else { return false };
        match c {
            '\\' => match self.rest.next() {
                Some('\n') | None => self.end_word(),
                Some(escaped) => self.letter(escaped),
            },
            '\'' | '"' => self.quoted(c),
            '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
            ' ' | '\t' => self.end_word(),
            '\n' => {
                self.command();
                self.here_documents();
            }
            ';' | '|' | '&' | '(' | ')' => self.command(),
            '<' | '>' => self.redirection(c),
            _ => self.letter(c),
        }
        true
    }

    fn letter(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self, quote: char) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.next().filter(|c| *c != quote) {
            match c {
                '\\' if quote == '"' => {
                    if let Some(escaped) = self.rest.next() {
                        self.letter(escaped);
                    }
                }
                _ => self.letter(c),
            }
        }
    }

    fn redirection(&mut self, direction: char) {
        // The number of what is redirected is no word.
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        let is_double = self.rest.next_if_eq(&direction).is_some();
        // `2>&1` names no file.
        if self.rest.next_if_eq(&'&').is_some() {
            while self.rest.next_if(char::is_ascii_digit).is_some() {}
            return;
        }
        if is_double && direction == '<' {
            while self.rest.next_if(|c| " -\t".contains(*c)).is_some() {}
            let mut end = String::new();
            while let Some(c) = self.rest.next_if(|c| !c.is_whitespace() && !";|&)".contains(*c)) {
                end.push(c);
            }
            self.ends.push(end.trim_matches(['\'', '"']).to_owned());
            return;
        }
        self.skips_word = true;
    }

    fn here_documents(&mut self) {
        for end in std::mem::take(&mut self.ends) {
            loop {
                let mut line = String::new();
                while let Some(c) = self.rest.next_if(|c| *c != '\n') {
                    line.push(c);
                }
                let is_over = self.rest.next().is_none();
                if is_over || line.trim() == end {
                    break;
                }
            }
        }
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.skips_word)
        {
            self.words.push(word);
        }
    }

    fn command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[test]
fn commands_are_cut_into_words() {
    let cut = |text: &str| commands(text).iter().map(|words| words.join("|")).collect::<Vec<_>>();
    assert_eq!(cut("a 'b c' \"d \\\"e\\\"\" f\\ g # h\ni"), ["a|b c|d \"e\"|f g", "i"]);
    assert_eq!(cut("a \\\n  b; c && d | e & (f)"), ["a|b", "c", "d", "e", "f"]);
    assert_eq!(cut("a > b 2>&1 c 2> d >> e f </dev/null"), ["a|c|f"]);
    assert_eq!(cut("cat > x <<'END'\na 'b\nEND\nc"), ["cat", "c"]);
    assert_eq!(cut("a '' '{\n}' x#y"), ["a||{\n}|x#y"]);
}
