//! The report as one HTML file, which needs no other file.

use super::experiment::{Missing, Number};
use super::report::{Report, Shown};
use crate::bench::plot::{Plot, Series};
use crate::paper::Paper;
use serde_json::Value as Json;
use std::error::Error;

/// The page.
pub fn page(report: &Report) -> Result<String, Box<dyn Error>> {
    let mut body = String::new();
    for paper in Paper::ALL {
        let mut figures =
            report.figures.iter().filter(|one| one.experiment.paper == paper).peekable();
        if figures.peek().is_none() {
            continue;
        }
        let (name, title) = (paper.name(), escaped(paper.title()));
        body += &format!("<section><h2 id=\"{name}\">{name}. {title}</h2>\n");
        for shown in figures {
            body += &figure(shown)?;
        }
        let missing: Vec<_> = report.missing.iter().filter(|one| one.paper == paper).collect();
        if !missing.is_empty() {
            let item = |one: &&&'static Missing| {
                format!("<li><b>{}</b>: {}</li>\n", escaped(one.name), escaped(one.why))
            };
            let items: String = missing.iter().map(item).collect();
            body += &format!("<h3>Without a command</h3>\n<ul>{items}</ul>\n");
        }
        body += "</section>\n";
    }
    let length =
        if report.is_quick { "<p>A quick run: few samples of each point.</p>" } else { "" };
    Ok(PAGE
        .replace("{style}", STYLE)
        .replace("{machine}", &(machine(&report.machine) + length))
        .replace("{body}", &body))
}

fn figure(shown: &Shown) -> Result<String, Box<dyn Error>> {
    let one = shown.experiment;
    let mut text = format!("<article><h3>{}: {}</h3>\n", escaped(one.name), escaped(one.title));
    for (name, sentence) in [("Shows", one.shows), ("Same", one.same), ("Differs", one.differs)] {
        text += &format!("<p><b>{name}.</b> {}</p>\n", escaped(sentence));
    }
    for note in &shown.notes {
        text += &format!("<p class=\"note\">{}</p>\n", escaped(note));
    }
    text += "<div class=\"plots\">\n";
    for plot in &shown.plots {
        text += &drawn(plot)?;
    }
    text += "</div>\n";
    if !shown.numbers.is_empty() {
        text += &numbers(&shown.numbers);
    }
    if let Some(command) = &shown.command {
        text += &format!("<p><code>{}</code></p>\n", escaped(command));
    }
    Ok(text + "</article>\n")
}

fn drawn(plot: &Plot) -> Result<String, Box<dyn Error>> {
    let name = |(index, series): (usize, &Series)| {
        let (colour, name) = (Plot::css_colour(index), escaped(&series.name));
        format!("<li><i style=\"background:{colour}\"></i>{name}</li>")
    };
    let names: String = plot.series.iter().enumerate().map(name).collect();
    let (title, svg) = (escaped(&plot.title), plot.svg_of_lines()?);
    Ok(format!("<figure><figcaption>{title}</figcaption>{svg}<ul>{names}</ul></figure>\n"))
}

fn numbers(numbers: &[Number]) -> String {
    let row = |one: &Number| {
        let cells =
            [&one.what, &one.paper, &one.here].map(|cell| format!("<td>{}</td>", escaped(cell)));
        format!("<tr>{}</tr>\n", cells.concat())
    };
    let rows: String = numbers.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table><tr><th></th><th>the paper</th><th>here</th></tr>\n{rows}\
         </table></div>\n"
    )
}

/// The facts about the machine, as a list that opens.
fn machine(facts: &Json) -> String {
    let mut items = String::new();
    for (group, facts) in facts.as_object().into_iter().flatten() {
        for (name, fact) in facts.as_object().into_iter().flatten() {
            let fact = fact.as_str().map_or_else(|| fact.to_string(), str::to_owned);
            items +=
                &format!("<li>{}, {}: {}</li>\n", escaped(group), escaped(name), escaped(&fact));
        }
    }
    format!("<details><summary>The machine</summary><ul>{items}</ul></details>")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
