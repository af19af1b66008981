//! Writes the experiments' cells as scenario files: `cargo run -p ttwu-lab --example scenario_files -- scenarios/reproduce`.

use std::path::Path;
use ttwu_lab::reproduce::scenario_files;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "scenarios/reproduce".to_owned());
    for file in scenario_files() {
        let path = Path::new(&folder).join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, file.text)?;
    }
    Ok(())
}
