//! Files of Petri nets, and expressions over their markings.

use bodkin_petri::{
    expression::Expression,
    format::{json, pnml, xpn},
    net::Net,
};

/// Whatever is read as a net is written in the own form and as PNML, and read again as the same net; an expression's text is the expression.
pub fn net(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let nets = [json::read(text).ok(), pnml::read(text).ok(), xpn::read(text, "net", "s").ok()];
    nets.into_iter().flatten().for_each(|net| written(&net));
    let index = |name: &str| name.strip_prefix('p').and_then(|number| number.parse::<usize>().ok()).filter(|index| *index < 4);
    if let Ok(expression) = Expression::parse(text, &index) {
        let name = |place: usize| format!("p{place}");
        let told = expression.text(&name).to_string();
        let again = Expression::parse(&told, &index).unwrap_or_else(|error| panic!("{text} was written as {told}: {error}"));
        let markings = [[0, 0, 0, 0], [1, 2, 3, 4], [u32::MAX, 1, 0, 7]];
        markings.iter().for_each(|marking| assert_eq!(again.value(marking).to_bits(), expression.value(marking).to_bits(), "{told}"));
    }
}

fn written(net: &Net) {
    let own = json::read(&json::write(net)).unwrap_or_else(|error| panic!("{error}: {net:?}"));
    assert_eq!(&own, net);
    let standard = pnml::read(&pnml::write(net)).unwrap_or_else(|error| panic!("{error}: {net:?}"));
    assert_eq!(&standard, net);
}
