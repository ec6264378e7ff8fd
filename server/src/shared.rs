//! What all connections share.

use std::sync::Arc;

use crate::calls::Calls;
use crate::connect::Protocols;
use crate::files::StaticFiles;
use crate::peer::Peers;
use crate::settings::Settings;

/// The state that all connections share.
pub struct Shared {
    pub settings: Settings,
    pub calls: Arc<Calls>,
    pub peers: Arc<Peers>,
    pub protocols: Protocols,
    pub files: StaticFiles,
}
