//! Whose an event is that came from another edge.
//!
//! Each edge numbers its publishers by itself. So that two of one number stay apart, and a result is named alike wherever it is made, the edge stands in the number of a publisher whose
//! events came over a link:
//!
//! ```text
//! bit 63        56 55            48 47               40 39                 0
//!     way in here  edge of origin   way in the part     publisher's number
//!                  plus 1           before              at its own edge
//! ```
//!
//! The way (of [`Lead::identity`](super::super::machine::Lead::identity)) is that on which any event starts an operator. One such way is kept of the parts before.

use super::EdgeId;
use crate::event::PublisherId;

const WAY: u32 = 56;
const EDGE: u32 = 48;
const EARLIER_WAY: u32 = 40;
const NUMBER: u64 = (1 << EARLIER_WAY) - 1;
const BYTE: u64 = 0xff;

/// Whose an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Where it was published.
    pub edge: EdgeId,
    /// By whom, as that edge numbers its publishers.
    pub publisher: PublisherId,
}

/// Why an event cannot be told apart from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOrigin {
    /// The publisher's number is too large.
    #[error("its publisher's number is {0}, and one from another edge is below 2^40")]
    Number(u64),
    /// Operators that any event starts are on its way in more than one part.
    #[error("operators that any event starts are on its way on more than one edge: place them on one")]
    Ways,
    /// No edge has this number.
    #[error("it comes from an edge of number {0}, and there are not so many: is the other edge's graph file another one?")]
    Edge(u64),
}

/// The publisher of an event that came over a link from `edge`, as it is called here. Gives the number that it has there if the event came there from another edge.
pub fn arrived(edge: EdgeId, edges: usize, publisher: PublisherId) -> Result<PublisherId, NoOrigin> {
    let PublisherId(number) = publisher;
    let (way, origin, earlier) = (number >> WAY, number >> EDGE & BYTE, number >> EARLIER_WAY & BYTE);
    match (origin, earlier, way) {
        (0, 0, _) => {}
        // A number of its own.
        (0, ..) => return Err(NoOrigin::Number(number)),
        (origin, ..) if origin > edges as u64 => return Err(NoOrigin::Edge(origin - 1)),
        (_, 0, _) | (_, _, 0) => {}
        _ => return Err(NoOrigin::Ways),
    }
    let origin = if origin == 0 { edge.index() as u64 + 1 } else { origin };
    Ok(PublisherId(origin << EDGE | (earlier | way) << EARLIER_WAY | number & NUMBER))
}

/// Whose an event is that came over a link; none for one that was published here.
pub fn origin(publisher: PublisherId) -> Option<Origin> {
    let edge = (publisher.0 >> EDGE & BYTE).checked_sub(1)?;
    Some(Origin { edge: EdgeId::of(edge as usize), publisher: PublisherId(publisher.0 & NUMBER) })
}

/// The publisher of an event that was made on `edge` and has come back to it, as it is called there, and the way in the part on which it came. One of another edge's is called the same.
pub fn at_home(edge: EdgeId, publisher: PublisherId) -> (PublisherId, u8) {
    match origin(publisher) {
        Some(origin) if origin.edge == edge => (origin.publisher, (publisher.0 >> EARLIER_WAY & BYTE) as u8),
        _ => (publisher, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRESS: usize = 0;
    const OFFICE: usize = 1;

    fn over(edge: usize, publisher: u64) -> Result<u64, NoOrigin> {
        arrived(EdgeId::of(edge), 2, PublisherId(publisher)).map(|publisher| publisher.0)
    }

    #[test]
    fn publishers_of_one_number_stay_apart_and_keep_their_edge_over_further_links() {
        let (press, office) = (over(PRESS, 7).unwrap(), over(OFFICE, 7).unwrap());
        assert!(press != office && press != 7 && office != 7 && press < 1 << 56);
        assert_eq!(over(OFFICE, press), Ok(press), "it was the press's before it came to the office");
        assert_eq!(origin(PublisherId(press)), Some(Origin { edge: EdgeId::of(PRESS), publisher: PublisherId(7) }));
        assert_eq!(origin(PublisherId(7)), None);
    }

    #[test]
    fn a_way_on_which_any_event_starts_an_operator_stays_part_of_the_name_once() {
        let one = over(PRESS, 1 << WAY | 7).unwrap();
        assert_ne!(one, over(PRESS, 2 << WAY | 7).unwrap());
        assert_eq!(over(OFFICE, one), Ok(one));
        assert_eq!(over(OFFICE, one | 3 << WAY), Err(NoOrigin::Ways));
        assert_eq!(origin(PublisherId(one)).unwrap().publisher, PublisherId(7));
    }

    #[test]
    fn what_comes_home_has_its_own_number_and_what_is_of_others_keeps_theirs() {
        let (here, press) = (EdgeId::of(OFFICE), over(PRESS, 7).unwrap());
        assert_eq!(at_home(here, PublisherId(over(OFFICE, 2 << WAY | 7).unwrap())), (PublisherId(7), 2));
        assert_eq!(at_home(here, PublisherId(press)), (PublisherId(press), 0));
    }

    #[test]
    fn numbers_that_no_edge_gives_are_refused() {
        assert_eq!(over(PRESS, 1 << 40), Err(NoOrigin::Number(1 << 40)));
        assert_eq!(over(PRESS, 3 << EDGE | 7), Err(NoOrigin::Edge(2)));
    }
}
