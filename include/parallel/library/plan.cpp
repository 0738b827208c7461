// Plans at start-up, and their texts.
#include <parallel/algebra/notation.ipp>
#include <parallel/plan/derive.ipp>
#include <parallel/question/text.ipp>
