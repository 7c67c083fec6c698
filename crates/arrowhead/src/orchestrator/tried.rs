//! Other clouds that were asked for a consumer in vain, and those that were not asked any more.

use std::time::Duration;

use crate::{
    error::{ArrowheadError, ExceptionType},
    record::Cloud,
};

/// Silent clouds that are told by their names; of more it is told how many.
const NAMED_MAX: usize = 8;

/// What became of asking other clouds, one after the other, until one grants something.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    first: Option<ArrowheadError>,
    /// Those that were asked, and have not answered in time.
    silent: Vec<String>,
    not_asked: usize,
}

impl Tried {
    /// A cloud was asked and grants nothing, for this reason.
    pub fn refused(&mut self, cloud: &Cloud, why: ArrowheadError) {
        if why.exception_type == ExceptionType::Timeout {
            self.silent.push(format!("{}.{}", cloud.name, cloud.operator));
        }
        self.first.get_or_insert(why);
    }

    /// So many clouds were not asked, because the time was over.
    pub fn not_asked(&mut self, clouds: usize) {
        self.not_asked += clouds;
    }

    /// What is told of those that were not asked; `None`: all were. `whole` is the time that all had together.
    pub fn told(&self, whole: Duration) -> Option<String> {
        let (whole, count) = (whole.as_secs_f32(), self.not_asked);
        let clouds = if count == 1 { "1 cloud was".to_owned() } else { format!("{count} clouds were") };
        let silent = match named(&self.silent) {
            Some(silent) => format!(", and {silent} asked and silent"),
            None => String::new(),
        };
        (count > 0).then(|| {
            format!("The time is over that all other clouds have together which one request asks ({whole:.1} s): {clouds} not asked any more{silent}.")
        })
    }

    /// What the consumer is told whom nobody has granted anything; `None`: that there is nothing.
    pub fn refusal(self, whole: Duration) -> Option<ArrowheadError> {
        if let Some(told) = self.told(whole) {
            return Some(ArrowheadError::timeout(told));
        }
        let further = self.silent.get(1..).and_then(named);
        let first = self.first?;
        Some(match further {
            Some(further) if first.exception_type == ExceptionType::Timeout => {
                ArrowheadError { error_message: format!("{} Besides, {further} silent.", first.error_message), ..first }
            }
            _ => first,
        })
    }
}

/// Clouds, and the verb that goes with them; `None`: none.
pub(crate) fn named(clouds: &[String]) -> Option<String> {
    let (told, further) = clouds.split_at(clouds.len().min(NAMED_MAX));
    match (told, further.len()) {
        ([], _) => None,
        ([one], 0) => Some(format!("{one} was")),
        ([first @ .., last], 0) => Some(format!("{} and {last} were", first.join(", "))),
        (told, further) => Some(format!("{} and {further} more were", told.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Duration = Duration::from_secs(60);

    fn cloud(name: &str) -> std::sync::Arc<Cloud> {
        Cloud::neighbor(2, "o", name).into()
    }

    #[test]
    fn whom_nobody_has_granted_anything_is_told_by_whom() {
        assert_eq!(Tried::default().refusal(WHOLE), None);
        let mut tried = Tried::default();
        tried.refused(&cloud("a"), ArrowheadError::auth("No."));
        tried.refused(&cloud("b"), ArrowheadError::timeout("Cloud b.o has not answered."));
        assert_eq!(tried.clone().refusal(WHOLE), Some(ArrowheadError::auth("No.")), "the first refusal is the answer");
        assert_eq!(tried.told(WHOLE), None);
    }

    #[test]
    fn silent_clouds_are_named_and_those_that_were_not_asked_are_counted() {
        let mut tried = Tried::default();
        for name in ["a", "b", "c"] {
            tried.refused(&cloud(name), ArrowheadError::timeout(format!("Cloud {name}.o has not answered.")));
        }
        let told = tried.clone().refusal(WHOLE).unwrap();
        assert_eq!((told.error_code, told.error_message.as_str()), (504, "Cloud a.o has not answered. Besides, b.o and c.o were silent."));
        tried.not_asked(2);
        let told = tried.refusal(WHOLE).unwrap();
        assert_eq!(told.error_code, 504);
        assert!(
            told.error_message.ends_with("(60.0 s): 2 clouds were not asked any more, and a.o, b.o and c.o were asked and silent."),
            "{told}"
        );
        let mut nobody = Tried::default();
        nobody.not_asked(1);
        assert!(nobody.told(WHOLE).unwrap().ends_with(": 1 cloud was not asked any more."), "who was not asked is not called silent");
    }

    #[test]
    fn of_many_silent_clouds_some_are_named() {
        let clouds: Vec<String> = (0..10).map(|number| format!("c{number}.o")).collect();
        assert_eq!(named(&clouds).unwrap(), "c0.o, c1.o, c2.o, c3.o, c4.o, c5.o, c6.o, c7.o and 2 more were");
    }
}
