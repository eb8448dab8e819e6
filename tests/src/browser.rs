//! A headless browser, controlled through the DevTools protocol.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Longest wait for an answer, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A Chromium with one page.
pub struct Browser {
    process: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    next: u64,
    /// Messages, requests and errors of the page since it was opened.
    events: Vec<Value>,
}

impl Browser {
    /// Starts one; its files go into `directory`.
    ///
    /// # Panics
    /// If there is none.
    pub fn start(directory: &Path) -> Browser {
        // The protocol's pipes are descriptors 3 and 4.
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 3<&0 4>&1 </dev/null >&2",
                "sh",
                "chromium",
            ])
            .args(["--headless=new", "--no-sandbox", "--remote-debugging-pipe"])
            .args(["--disable-gpu", "--no-first-run", "--disable-extensions"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .arg(format!(
                "--user-data-dir={}",
                directory.join("browser").display()
            ))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let commands = process.stdin.take().expect("a pipe");
        let answers = process.stdout.take().expect("a pipe");
        let (send, messages) = channel();
        thread::spawn(move || {
            let messages = BufReader::new(answers).split(0).map_while(Result::ok);
            for message in messages {
                let message = serde_json::from_slice(&message).expect("JSON");
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Browser {
            process,
            commands,
            messages,
            session: String::new(),
            next: 0,
            events: Vec::new(),
        };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.ask(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        browser.session = attached["sessionId"]
            .as_str()
            .expect("a session")
            .to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Sends a command; returns its result.
    ///
    /// # Panics
    /// If the browser refuses, or does not answer for long.
    #[track_caller]
    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut command = json!({"id": self.next, "method": method, "params": parameters});
        if !self.session.is_empty() {
            command["sessionId"] = json!(self.session);
        }
        let mut bytes = serde_json::to_vec(&command).expect("JSON");
        bytes.push(0);
        self.commands
            .write_all(&bytes)
            .expect("a browser that listens (is chromium installed?)");
        loop {
            let message = self.message();
            if message["id"] == self.next {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    #[track_caller]
    fn message(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE);
        message.unwrap_or_else(|error| panic!("the browser says nothing: {error}"))
    }

    /// Opens a file and waits until it is loaded.
    #[track_caller]
    pub fn open(&mut self, file: &Path) {
        self.visit(&format!("file://{}", file.display()));
    }

    /// Opens a URL and waits until it is loaded.
    #[track_caller]
    pub fn visit(&mut self, url: &str) {
        self.events.clear();
        self.ask("Page.navigate", json!({"url": url}));
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let message = self.message();
            self.events.push(message);
        }
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.ask("Runtime.evaluate", parameters);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].clone()
    }

    /// Presses a key, such as `Enter` or `Tab`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            " " => (32, " "),
            "End" => (35, ""),
            "Home" => (36, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            _ => (9, ""),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let parameters =
                json!({"type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text});
            self.ask("Input.dispatchKeyEvent", parameters);
        }
    }

    /// Types a text.
    pub fn write(&mut self, text: &str) {
        self.ask("Input.insertText", json!({"text": text}));
    }

    /// Switches the page to a medium (`screen` or `print`) and a colour scheme.
    pub fn show_on(&mut self, medium: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask(
            "Emulation.setEmulatedMedia",
            json!({"media": medium, "features": features}),
        );
    }

    /// A picture of the whole page with this width in pixels (PNG).
    pub fn picture(&mut self, width: u32) -> Vec<u8> {
        self.fit(width);
        let result = self.ask("Page.captureScreenshot", json!({"format": "png"}));
        decoded(&result["data"])
    }

    /// Makes the window this wide, and as high as the page.
    fn fit(&mut self, width: u32) {
        let size = |height: &Value| json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", size(&json!(900)));
        let height = self.value("document.documentElement.scrollHeight");
        self.ask("Emulation.setDeviceMetricsOverride", size(&height));
    }

    /// A picture of what these selectors choose together, in a page with this width in pixels (PNG).
    pub fn picture_of(&mut self, selectors: &str, width: u32) -> Vec<u8> {
        self.fit(width);
        let clip = self.value(&format!(
            "(() => {{ const all = [...document.querySelectorAll({selectors:?})]
                .map((one) => one.getBoundingClientRect());
            const least = (of) => Math.min(...all.map(of)) - 8;
            const [x, y] = [least((one) => one.left), scrollY + least((one) => one.top)];
            const right = Math.max(...all.map((one) => one.right));
            const bottom = scrollY + Math.max(...all.map((one) => one.bottom)) + 8;
            const [left, top] = [Math.max(x, 0), Math.max(y, 0)];
            return {{ x: left, y: top, width: Math.min(right + 8, innerWidth) - left,
                height: bottom - top, scale: 1 }}; }})()"
        ));
        let how = json!({"format": "png", "clip": clip});
        let result = self.ask("Page.captureScreenshot", how);
        decoded(&result["data"])
    }

    /// The page on paper (PDF).
    pub fn paper(&mut self) -> Vec<u8> {
        let result = self.ask("Page.printToPDF", json!({"preferCSSPageSize": true}));
        decoded(&result["data"])
    }

    /// Errors, and messages of the script or the browser, since the page was opened.
    pub fn complaints(&self) -> Vec<String> {
        let is_complaint = |event: &&Value| {
            let method = event["method"].as_str().unwrap_or_default();
            matches!(
                method,
                "Runtime.exceptionThrown"
                    | "Runtime.consoleAPICalled"
                    | "Log.entryAdded"
                    | "Page.javascriptDialogOpening"
            )
        };
        let complaints = self.events.iter().filter(is_complaint);
        complaints
            .map(|event| event["params"].to_string())
            .collect()
    }

    /// URLs requested since the page was opened.
    pub fn requests(&self) -> Vec<String> {
        let requests = self.events.iter();
        let requests = requests.filter(|event| event["method"] == "Network.requestWillBeSent");
        let urls = requests.map(|event| event["params"]["request"]["url"].clone());
        urls.map(|url| url.as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

fn decoded(text: &Value) -> Vec<u8> {
    use base64::Engine;
    let text = text.as_str().expect("a picture");
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .expect("base64")
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
