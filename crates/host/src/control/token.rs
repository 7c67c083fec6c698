//! Endpoints of Authorization that make tokens, and the key that they are verified with (reference sections 4 and 12).

use std::{sync::Arc, time::Instant};

use bodkin_arrowhead::{
    authorization::{
        TokenGenerationMultiResponse, TokenRequest,
        token::{self, TokenOrder},
    },
    core_service::CoreSystem,
    error::ArrowheadError,
    form::TokenGenerationRequest,
};
use serde::de::IgnoredAny;

use super::{Control, Result};
use crate::{answer::Answer, request::Request, stage::Stage, token::TokenIssuer};

const SYSTEM: CoreSystem = CoreSystem::Authorization;
const TOKEN: &str = "/authorization/token";
const TOKENS: &str = "/authorization/token/multi";

impl Control {
    /// A JSON text: with its quotes.
    pub(super) fn public_key(&self) -> Result<Answer> {
        let insecure = || ArrowheadError::arrowhead("Authorization core service runs in insecure mode, it has no public key.");
        let issuer = self.tokens.as_ref().ok_or_else(insecure)?;
        Ok(Answer::json(200, &issuer.authentication_info()))
    }

    pub(super) async fn token(&self, request: &Request) -> Result<Answer> {
        let Some(issuer) = &self.tokens else {
            // A body that is no form is told first.
            let _: IgnoredAny = self.form(SYSTEM, request)?;
            return Err(insecure().into());
        };
        let form: TokenGenerationRequest = self.form(SYSTEM, request)?;
        let request = TokenRequest::parse(form, &issuer.own_cloud(), issuer.lifetimes(), TOKEN)?;
        let orders: Vec<&TokenOrder> = request.orders().collect();
        let tokens = self.issue_tokens(issuer, &orders).await?;
        let account = token::account(&orders, &tokens, |order| issuer.is_endless(order));
        let answer = Answer::json(200, &request.response(&mut tokens.into_iter())?);
        Ok(Answer { account: Some(Box::new(account)), ..answer })
    }

    pub(super) async fn tokens(&self, request: &Request) -> Result<Answer> {
        let Some(issuer) = &self.tokens else {
            let _: Vec<Option<IgnoredAny>> = self.forms(SYSTEM, request)?;
            return Err(insecure().into());
        };
        let forms: Vec<Option<TokenGenerationRequest>> = self.forms(SYSTEM, request)?;
        if forms.is_empty() {
            return Err(ArrowheadError::bad_payload("Token request list is empty.", TOKENS).into());
        }
        let own_cloud = issuer.own_cloud();
        let parse =
            |form: Option<TokenGenerationRequest>| TokenRequest::parse(form.unwrap_or_default(), &own_cloud, issuer.lifetimes(), TOKENS);
        let requests = forms.into_iter().map(parse).collect::<std::result::Result<Vec<_>, _>>()?;
        let orders: Vec<&TokenOrder> = requests.iter().flat_map(TokenRequest::orders).collect();
        let tokens = self.issue_tokens(issuer, &orders).await?;
        let account = token::account(&orders, &tokens, |order| issuer.is_endless(order));
        let mut tokens = tokens.into_iter();
        let data = requests.iter().map(|request| request.tokens_of_service(&mut tokens)).collect();
        Ok(Answer { account: Some(Box::new(account)), ..Answer::json(200, &TokenGenerationMultiResponse { data }) })
    }

    /// Gives a token for each order, in their order, and notes how long it took.
    pub(super) async fn issue_tokens(&self, issuer: &TokenIssuer, orders: &[&TokenOrder]) -> Result<Vec<Option<Arc<str>>>> {
        let started = Instant::now();
        let tokens = issuer.issue(orders).await?;
        self.record(SYSTEM, Stage::Execute, started);
        Ok(tokens)
    }
}

fn insecure() -> ArrowheadError {
    ArrowheadError::arrowhead("Authorization core service runs in insecure mode, it can not generate tokens.")
}
