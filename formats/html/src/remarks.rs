//! Anomalies of the run, and the making of the report.

use laggard_report::units::{count, duration, plural, size};
use laggard_report::{HostProcessors, Report, words};
use maud::{Markup, html};

use crate::text::{amount, name, sentence};

/// Most anomalies listed.
const LISTED: usize = 100;
/// Most hosts named.
const HOSTS: usize = 16;

/// The section of anomalies, if there are any.
pub fn anomalies(report: &Report) -> Markup {
    let rows = words::alike(&report.anomalies);
    html! {
        @if !rows.is_empty() {
            section #anomalies aria-labelledby="anomalies-title" {
                h2 #anomalies-title { "Anomalies" }
                div.scroll {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Level" }
                                th scope="col" { "What" }
                                th.number scope="col" { "Times" }
                                th scope="col" { "Detail" }
                            }
                        }
                        tbody {
                            @for (first, times, others) in rows.iter().take(LISTED) {
                                tr {
                                    td { span class=(format!("level {}", first.severity.name())) {
                                        (first.severity.name())
                                    } }
                                    td { (name(&first.id.replace('_', " "))) }
                                    td.number { (count(*times)) }
                                    td {
                                        (sentence(&first.detail))
                                        @if let Some(origin) = &first.origin {
                                            span.soft {
                                                " [" (name(origin))
                                                @if *others > 0 { " and " (others) " more" }
                                                "]"
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
                @if rows.len() > LISTED {
                    p.soft { "and " (rows.len() - LISTED) " more in the report file" }
                }
            }
        }
    }
}

/// Run, settings and analysis in figures.
pub fn about(report: &Report) -> Markup {
    let (run, settings, agents) = (&report.run, &report.settings, &report.agents);
    let hosts = named(&run.hosts);
    let measured = match settings.all {
        true => "every call was measured".to_owned(),
        false => format!(
            "calls that take {} % of their rank's time or more, and {} times their baseline, or \
             whose slowest takes {} times the mean, or the mean that many times the fastest",
            settings.hotspot_percent, settings.baseline_ratio, settings.deviation_ratio
        ),
    };
    html! {
        section #about aria-labelledby="about-title" {
            h2 #about-title { "About this report" }
            div.scroll {
                table {
                    tbody {
                        (line("Program", &sentence(&run.program)))
                        (line("Hosts", &hosts))
                        @if !run.processors.is_empty() {
                            (line("Cores", &cores(&run.processors)))
                        }
                        @if let Some(library) = &run.mpi_library { (line("MPI", &sentence(library))) }
                        (line("Models", &sentence(&run.models.join(", "))))
                        (line("Trace", &format!(
                            "{} in {}", size(run.trace_bytes),
                            plural(run.locations.into(), "location")
                        )))
                        @if let Some(began) = run.began_unix_s {
                            (line("Recorded", &date(began)))
                        }
                        @if let Some(error) = run.clock_error_s && error > 0.0 {
                            (line("Clocks", &format!("compared to {} or better", duration(error))))
                        }
                        (line("Looked at", &measured))
                        @if settings.fast { (line("Left out", "root causes (--fast)")) }
                        @if settings.charge_last {
                            (line("Blame", "the last member of a collective has all of it"))
                        }
                        @if let Some(baseline) = &settings.baseline {
                            (line("Baseline", &sentence(baseline)))
                        }
                        (line("Analysis", &format!(
                            "by {} in {}", plural(agents.count.into(), "agent"),
                            duration(agents.analysis_time_s)
                        )))
                    }
                }
            }
        }
    }
}

/// Names, the first of many.
fn named(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(HOSTS).map(|text| name(text)).collect();
    let more = match names.len() > HOSTS {
        true => format!(" and {} more", names.len() - HOSTS),
        false => String::new(),
    };
    shown.join(", ") + &more
}

/// `n1, n2: 4 for 2 ranks on each (processors 0-3, no more than 2 at a time)`.
fn cores(alike: &[HostProcessors]) -> String {
    let rows = alike.iter().take(HOSTS).map(|row| {
        let quota = row
            .quota
            .map(|most| format!(", no more than {most} at a time"));
        format!(
            "{}: {} for {}{} (processors {}{})",
            named(&row.hosts),
            row.cores,
            plural(row.ranks.into(), "rank"),
            if row.hosts.len() > 1 { " on each" } else { "" },
            named(&row.affinities),
            quota.unwrap_or_default()
        )
    });
    let mut rows = rows.collect::<Vec<_>>().join("; ");
    if alike.len() > HOSTS {
        rows.push_str(&format!("; and {} more kinds", alike.len() - HOSTS));
    }
    rows
}

/// A moment in Unix time: `2026-11-22 09:03 UTC`.
fn date(unix_s: f64) -> String {
    let minutes = (amount(unix_s) / 60.0) as u64;
    let (days, minute) = (minutes / 1440, minutes % 1440);
    // Days of the Gregorian calendar, in eras of 400 years from a March on.
    let since = days + 719_468;
    let (era, of_era) = (since / 146_097, since % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    let (hour, minute) = (minute / 60, minute % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

fn line(label: &str, text: &str) -> Markup {
    html! { tr { th scope="row" { (label) } td { (text) } } }
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_of_the_calendar() {
        assert_eq!(date(0.0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_827_940.0), "2000-02-29 12:39 UTC");
        assert_eq!(date(1_795_338_180.9), "2026-11-22 09:03 UTC");
        assert_eq!(date(4_102_444_799.0), "2099-12-31 23:59 UTC");
        assert!(date(f64::INFINITY).ends_with("UTC"));
    }
}
