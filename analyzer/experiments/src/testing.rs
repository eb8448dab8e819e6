//! Made-up reports, for tests.

use laggard_report::{
    Agents, Bottleneck, Cause, Efficiency, LocationSums, OperationTimes, Region, Report,
    Run as RunOf, Settings, SourceLocation,
};

use crate::set::Run;

/// A run of four ranks with this wall time, half of it computing, half in MPI_Barrier.
pub fn run(source: &str, wall: f64) -> Run {
    Run {
        source: source.to_owned(),
        report: report(4, wall, 2.0 * wall),
    }
}

/// A run of `ranks` ranks with `computation` seconds in all, and MPI_Barrier for the rest.
pub fn report(ranks: u32, wall: f64, computation: f64) -> Report {
    let all = wall * f64::from(ranks);
    Report {
        schema: laggard_report::SCHEMA.to_owned(),
        run: RunOf {
            program: "/home/me/app".to_owned(),
            ranks,
            locations: ranks,
            hosts: vec!["vm".to_owned()],
            models: vec!["mpi".to_owned()],
            wall_time_s: wall,
            operations: 100,
            ..RunOf::default()
        },
        settings: Settings::default(),
        agents: Agents::default(),
        efficiency: Efficiency {
            parallel: computation / all,
            load_balance: 1.0,
            communication: computation / all,
            ..Efficiency::default()
        },
        phases_of_run: None,
        location_sums: Some(LocationSums {
            computation_s: computation,
            synchronization_s: all - computation,
            wall_s: all,
            ..LocationSums::default()
        }),
        locations: Vec::new(),
        location_classes: Vec::new(),
        metrics: Default::default(),
        operations: vec![OperationTimes {
            operation: "MPI_Barrier".to_owned(),
            operation_type: "group_sync".to_owned(),
            time: "synchronization".to_owned(),
            calls: 100,
            total_s: all - computation,
            wait_s: 0.0,
            cost_s: None,
            ..OperationTimes::default()
        }],
        messages: None,
        call_tree: None,
        rank_matrix: None,
        root_causes: None,
        untraced_s: None,
        unlisted_s: None,
        waiting_by_activity_s: Default::default(),
        wait_classes: Default::default(),
        delay_costs: Default::default(),
        critical_path: None,
        parallelism: None,
        bottlenecks: Vec::new(),
        below_hotspot: None,
        called_once: Vec::new(),
        imbalance: Vec::new(),
        functions: Vec::new(),
        thread_imbalance: Vec::new(),
        regions: Vec::new(),
        anomalies: Vec::new(),
    }
}

/// Adds a wait in MPI_Barrier at a line of `function`; rank 2 computed for a share of it.
pub fn add_wait(report: &mut Report, function: &str, line: u32, lost: f64, computed: f64) {
    let location = SourceLocation {
        file: "/home/me/app.c".to_owned(),
        line,
        function: function.to_owned(),
        callpath: vec![
            "main app.c:3".to_owned(),
            format!("{function} app.c:{line}"),
        ],
        ..SourceLocation::default()
    };
    report.bottlenecks.push(Bottleneck {
        pattern: "wait_at_barrier".to_owned(),
        name: "Wait at barrier".to_owned(),
        operation: "MPI_Barrier".to_owned(),
        operation_type: "group_sync".to_owned(),
        severity_s: lost,
        percent: lost / report.sums().wall_s * 100.0,
        confidence: 1.0,
        calls: 40,
        instances: 30,
        filter: "all".to_owned(),
        causes: vec![Cause {
            rank: 2,
            operation: "MPI_Barrier".to_owned(),
            location: location.clone(),
            severity_s: lost,
            share: 1.0,
            because: "computed 100 % of that time before it came".to_owned(),
            computation_s: Some(computed),
            wait_s: Some(lost - computed),
            io_s: Some(0.0),
            ..Cause::default()
        }],
        location,
        ..Bottleneck::default()
    });
    if let Some(sums) = &mut report.location_sums {
        sums.wait_s += lost;
    }
    report.operations[0].wait_s += lost;
}

/// Adds a region with this computation of all ranks together.
pub fn add_region(report: &mut Report, name: &str, exclusive: f64) {
    report.regions.push(Region {
        region: name.to_owned(),
        kind: "region".to_owned(),
        location: SourceLocation {
            file: "app.c".to_owned(),
            line: 9,
            function: "main".to_owned(),
            callpath: vec!["main app.c:9".to_owned()],
            ..SourceLocation::default()
        },
        calls: 10,
        locations: report.run.ranks.into(),
        inclusive_s: exclusive + 0.5,
        exclusive_s: exclusive,
        imbalance: 1.0,
        filter: "none".to_owned(),
        ..Region::default()
    });
}
