//! Tokens that were made and are still good.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bodkin_arrowhead::{authorization::token::TokenOrder, utc::UtcTime};

/// Tokens that are kept, with about 2 KiB each; for one more the one goes that is good for the shortest time.
pub const TOKENS_MAX: usize = 16_384;

/// Tokens by what was ordered: consumer, service, interface, provider, its key, and lifetime.
#[derive(Debug, Default)]
pub struct TokenCache {
    tokens: BTreeMap<Arc<TokenOrder>, Kept>,
    /// The same, by when they go.
    by_end: BTreeSet<(UtcTime, Arc<TokenOrder>)>,
}

#[derive(Debug)]
struct Kept {
    token: Arc<str>,
    made: UtcTime,
    /// From then on it is handed out no more: half of its lifetime is over.
    end: UtcTime,
}

impl TokenCache {
    /// The token of an order, if at least half of its lifetime is left.
    pub fn get(&self, order: &TokenOrder, now: UtcTime) -> Option<Arc<str>> {
        let kept = self.tokens.get(order)?;
        // A clock that was set back must not make tokens last longer.
        (kept.made <= now && now < kept.end).then(|| kept.token.clone())
    }

    /// Keeps a token that was made at `now`.
    pub fn insert(&mut self, order: TokenOrder, token: Arc<str>, now: UtcTime) {
        let end = now.plus(order.lifetime / 2);
        let order = Arc::new(order);
        if let Some(former) = self.tokens.insert(order.clone(), Kept { token, made: now, end }) {
            self.by_end.remove(&(former.end, order.clone()));
        }
        self.by_end.insert((end, order));
        while self.by_end.first().is_some_and(|(end, _)| *end <= now) || self.tokens.len() > TOKENS_MAX {
            let (_, order) = self.by_end.pop_first().expect("there are as many ends as tokens");
            self.tokens.remove(&order);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bodkin_arrowhead::{
        authorization::token::Grant,
        common_name::SystemCommonName,
        name::{InterfaceName, ServiceDefinition},
        system::SystemKey,
    };

    use super::*;

    fn at(seconds: u64) -> UtcTime {
        UtcTime::from_unix_seconds(1_900_000_000 + seconds)
    }

    fn order(provider_key: &str, lifetime_s: u64) -> TokenOrder {
        TokenOrder {
            grant: Grant {
                consumer: SystemCommonName::parse("display.cloud.operator.arrowhead.eu").unwrap(),
                service: ServiceDefinition::from_stored("temperature"),
                interface: InterfaceName::from_stored("HTTP-SECURE-JSON"),
            },
            provider: SystemKey::new("sensor", "10.0.0.1", 8080),
            provider_key: provider_key.into(),
            lifetime: Duration::from_secs(lifetime_s),
        }
    }

    #[test]
    fn a_token_is_given_again_while_half_of_its_time_is_left() {
        let mut cache = TokenCache::default();
        cache.insert(order("a", 600), "token".into(), at(0));
        let get = |seconds| cache.get(&order("a", 600), at(seconds));
        assert_eq!((get(0).as_deref(), get(299).as_deref(), get(300)), (Some("token"), Some("token"), None));
        let set_back = UtcTime::from_unix_seconds(1_899_999_999);
        assert_eq!(cache.get(&order("a", 600), set_back), None, "the clock was set back");
    }

    #[test]
    fn every_part_of_an_order_counts() {
        let mut cache = TokenCache::default();
        let kept = order("a", 600);
        cache.insert(kept.clone(), "token".into(), at(0));
        let grant = |change: fn(&mut Grant)| {
            let mut order = kept.clone();
            change(&mut order.grant);
            order
        };
        for other in [
            order("b", 600),
            order("a", 601),
            TokenOrder { provider: SystemKey::new("sensor", "10.0.0.1", 8081), ..kept.clone() },
            grant(|grant| grant.consumer = SystemCommonName::parse("other.cloud.operator.arrowhead.eu").unwrap()),
            grant(|grant| grant.service = ServiceDefinition::from_stored("humidity")),
            grant(|grant| grant.interface = InterfaceName::from_stored("HTTP-SECURE-XML")),
        ] {
            assert_eq!(cache.get(&other, at(1)), None, "{other:?}");
        }
    }

    #[test]
    fn a_full_cache_lets_go_what_is_good_for_the_shortest_time() {
        let mut cache = TokenCache::default();
        cache.insert(order("short", 100), "short".into(), at(0));
        (0..TOKENS_MAX).for_each(|number| cache.insert(order(&number.to_string(), 600), "token".into(), at(0)));
        assert_eq!((cache.tokens.len(), cache.by_end.len()), (TOKENS_MAX, TOKENS_MAX));
        assert_eq!(cache.get(&order("short", 100), at(1)), None);
        assert!(cache.get(&order("0", 600), at(1)).is_some());
    }

    #[test]
    fn what_is_over_goes_when_something_is_kept() {
        let mut cache = TokenCache::default();
        (0..10).for_each(|number| cache.insert(order(&number.to_string(), 600), "token".into(), at(0)));
        cache.insert(order("0", 600), "again".into(), at(299));
        cache.insert(order("new", 600), "token".into(), at(300));
        assert_eq!((cache.tokens.len(), cache.by_end.len()), (2, 2));
        assert_eq!(cache.get(&order("0", 600), at(301)).as_deref(), Some("again"));
    }
}
