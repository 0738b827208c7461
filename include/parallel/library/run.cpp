// What surrounds a run: its data, its command line, what it says of itself and what it records.
#include <parallel/communicator/fact.ipp>
#include <parallel/run/failure.ipp>
#include <parallel/run/finite.ipp>
#include <parallel/run/mesh_argument.ipp>
#include <parallel/run/progress.ipp>
#include <parallel/run/recording.ipp>
#include <parallel/run/run_log.ipp>
#include <parallel/run/text_data.ipp>
#include <parallel/run/watching.ipp>
