//! Whom front, molds and workers run as, when root has started the server.

use nix::unistd::{self, Gid, Group, Uid, User};
use serde_json::{Value, json};
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

/// A user with a group. The user's other groups come along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    name: CString,
    uid: u32,
    gid: u32,
    home: PathBuf,
}

impl Identity {
    /// The one that the settings `user` and `group` name. None: no change.
    pub fn find(user: Option<&str>, group: Option<&str>) -> Result<Option<Identity>, String> {
        let (user, group) = match (user, group) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err("group: name a user too".into()),
            (Some(user), group) => (user, group),
        };
        let found = User::from_name(user).ok().flatten();
        let found = found.ok_or_else(|| {
            format!("user: this machine has no user {user:?}: see `getent passwd`")
        })?;
        let gid = match group {
            None => found.gid,
            Some(group) => {
                Group::from_name(group).ok().flatten().map(|group| group.gid).ok_or_else(|| {
                    format!("group: this machine has no group {group:?}: see `getent group`")
                })?
            }
        };
        if !Uid::effective().is_root() {
            // Already who it is to be: nothing to change, and nothing that root would be needed for.
            if Uid::effective() == found.uid && Gid::effective() == gid {
                return Ok(None);
            }
            return Err("user: only root can run workers as somebody else: start the server as \
                        root, or leave `user` out"
                .into());
        }
        let name = CString::new(found.name).map_err(|_| "user: a name with a zero byte")?;
        Ok(Some(Identity { name, uid: found.uid.as_raw(), gid: gid.as_raw(), home: found.dir }))
    }

    /// For another process of ours.
    pub fn to_json(&self) -> Value {
        json!({ "name": self.name.to_string_lossy(), "uid": self.uid, "gid": self.gid, "home": self.home })
    }

    /// What `to_json` has made.
    pub fn from_json(value: &Value) -> Option<Identity> {
        let number = |key: &str| value[key].as_u64().and_then(|id| u32::try_from(id).ok());
        let name = CString::new(value["name"].as_str()?).ok()?;
        let home = value["home"].as_str()?.into();
        Some(Identity { name, uid: number("uid")?, gid: number("gid")?, home })
    }

    /// Makes the calling process, which has one thread and is root, run as this user for ever.
    pub fn assume(&self) -> io::Result<()> {
        unistd::initgroups(&self.name, Gid::from_raw(self.gid))?;
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        // Real, effective and saved: none is left to go back to.
        unistd::setresgid(gid, gid, gid)?;
        unistd::setresuid(uid, uid, uid)?;
        if !uid.is_root() && unistd::setuid(Uid::from_raw(0)).is_ok() {
            return Err(io::Error::other("there is a way back to root"));
        }
        Ok(())
    }

    /// What programs go by that ask who runs them.
    pub fn variables(&self) -> [(&'static str, OsString); 3] {
        let name = || OsString::from(self.name.to_string_lossy().into_owned());
        [("HOME", self.home.clone().into()), ("USER", name()), ("LOGNAME", name())]
    }

    /// Gives a file to this user.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up() {
        assert_eq!(Identity::find(None, None), Ok(None));
        let error = |user, group| Identity::find(user, group).unwrap_err();
        assert!(error(Some("nobody-of-this-name"), None).contains("no user"));
        assert!(error(None, Some("daemon")).contains("name a user"));
        assert!(error(Some("nobody"), Some("no-such-group")).contains("no group"));
        if Uid::effective().is_root() {
            let daemon = Identity::find(Some("daemon"), None).unwrap().unwrap();
            assert_eq!(Identity::from_json(&daemon.to_json()), Some(daemon));
        } else {
            assert!(error(Some("root"), None).contains("only root"));
        }
    }
}
