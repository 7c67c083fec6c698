//! A deployment as a net: what was measured of a running cloud becomes laws, these become a net of any size, and its simulation says what
//! another number of processors, publishers, subscribers or another rate would do.
//!
//! Times are in microseconds. `docs/design/deployment.md` has the nets, what is estimated from which figure, and how far off predictions were.

mod by_load;
mod calibration;
mod costs;
mod draft;
mod durations;
mod event_path;
mod graph;
mod graph_calibration;
mod graph_path;
mod least_squares;
mod orchestration;
mod orchestration_path;
mod prediction;

pub use self::{
    by_load::{Apart, CostsByLoad, EventCosts, GraphCostsByLoad, LEFT_OUT_LOADS_MIN, LeftOut, Load, LoadCosts, is_beyond},
    calibration::{Calibration, CalibrationError, calibrate, deployment, leave_out},
    costs::{Costs, EventRun, Wake, Work},
    durations::Durations,
    event_path::{Deployment, EVENT_PATH_SUBSCRIBERS_MAX, EventPath, event_path},
    graph::{
        Graph, GraphCosts, GraphDeployment, GraphInput, GraphOperator, GraphOutput, GraphRun, GraphSource, GraphSupplier, OperatorCost,
        OperatorRun,
    },
    graph_calibration::{GraphCalibration, GraphCalibrationError, calibrate_graph, leave_out_of_graph},
    graph_path::{GRAPH_OPERATORS_MAX, GraphPath, graph_path},
    orchestration::{
        Beside, Dialogue, HeldUp, OrchestrationCalibration, OrchestrationError, OrchestrationLaws, OrchestrationRun, OrchestrationStep,
        Places, Sides, Whose, fit_orchestrations, leave_out_of_orchestrations,
    },
    orchestration_path::{ORCHESTRATION_CORES_MAX, OrchestrationDeployment, orchestration},
    prediction::{
        Effort, GraphPrediction, Prediction, PredictionError, predict_answers, predict_events, predict_graph, predict_orchestrations,
    },
};

#[cfg(test)]
mod graph_tests;
#[cfg(test)]
mod tests;
