// What a model's functions apply to what: a program before it has an order. A compiler may run the arguments of a call
// in any order, the same one in another at run time, so nothing may depend on the order in which applications are noted
// here: graph/write.hpp gives them the program's.
#pragma once
#include <string_view>

#include <parallel/graph/infer.hpp>
#include <parallel/graph/recomputation.hpp>

namespace parallel::internals {

/// One value of a program, as the model's functions made it: an operation applied to others, or where a value comes
/// from.
struct Application {
  enum class What : std::uint8_t {
    operation,  ///< an operation on operands, as it was inferred
    move,       ///< the verb `to`: its operand in another layout
    beside,     ///< its first operand, behind whatever starts the others
    source,     ///< made from nothing, anew wherever it is used
    given,      ///< a parameter or an input: a value that the graph has declared
    stray,      ///< nothing that the program has declared: the graph with it is refused
    carried,    ///< within a loop: what an iteration takes
    loop,       ///< what the last iteration of a loop returns
    sequence,   ///< its operand as the steps of a loop take slices of it
    step,       ///< within a loop over steps: an iteration's slice of a sequence
    each,       ///< of a loop over steps: what every iteration gave, one behind the other
  };
  What what = What::operation;
  const Operation* operation = nullptr;  ///< of an operation or a source
  List<int, max_operands> operands{};    ///< applications; of a loop: what the first iteration takes
  const Inference* inferred = nullptr;   ///< of an operation
  const Ints* ints = nullptr;            ///< of an operation
  const Type* type =
      nullptr;  ///< what it becomes: of a move, a source, a stray; as a parameter enters; as a loop carries it
  Kind kind = Kind::data;  ///< of a source
  double first = 0, second = 0;
  Source where{};
  int loop = -1;       ///< the carried value of the loop in whose body it was applied, or -1
  bool again = false;  ///< the backward pass is to compute it again
  /// what of its nodes, or of a loop's, the backward pass is to compute again
  const Recomputation* recomputation = nullptr;
  bool keeps_on_host = false;
  bool stacked = false;  ///< a parameter of layers: used is the slice of a layer
  int value = -1;        ///< of what is given: its value in the graph
  int region = -1;       ///< of an input with micro-batches: the region of which each iteration takes a slice

  // Of a loop:
  int carried = -1, returned = -1;  ///< what an iteration takes and returns
  int given = -1;                   ///< of steps: what each of them gives; -1: of layers
  int count = 1;                    ///< of iterations
  /// of iterations that are shared out over stages: how the carried value lies while it goes from one to the next
  const Layout* crossing = nullptr;
};

/// What a loop's body gives, by its numbers: what the next iteration takes, and of a step what it gives beside.
struct Returned {
  int state = -1, given = -1;
};

/// Whoever carries out at once, on numbers, what is applied (run/carrying_out.hpp). A plan needs nobody.
class CarryingOut {
 public:
  /// Notes an application and carries it out. Returns its number.
  virtual int applied(const Application& application) = 0;
  /// The iterations of a loop follow: the first takes the application `initial`, each what the one before returned, in
  /// this type.
  virtual void begin_loop(int initial, int carried, const Type& type, int count) = 0;
  /// An iteration has returned. Whether another follows.
  virtual bool goes_on(const Returned& returned) = 0;
  /// Prints a tensor; all ranks together.
  virtual void look(int number, std::string_view name) = 0;
  /// Prints what this rank has of it, to be called in a debugger: `call h.of->out->show(h.value)`.
  virtual void show(int number) = 0;

 protected:
  ~CarryingOut() = default;
};

class Applications {
 public:
  Vector<Application> all{};
  int loop = -1;               ///< in the body of which loop the program stands
  bool dry = false;            ///< only the user's functions run, nothing is noted
  int applied = 0;             ///< how many operations they applied
  bool mistaken = false;       ///< they did what is refused, and the types do not show it
  CarryingOut* out = nullptr;  ///< carries out at once what is added

  constexpr int add(const Application& application) {
    return out != nullptr ? out->applied(application) : note(application);
  }
  /// Runs a loop's body: once, for a plan has it once, or for each iteration that is carried out.
  template <class Body>
  constexpr Returned iterate(int initial, int carried, const Type& type, int count, Body body) {
    if (out != nullptr) out->begin_loop(initial, carried, type, count);
    const Returned returned = body();
    while (out != nullptr && out->goes_on(returned)) static_cast<void>(body());
    return returned;
  }
  constexpr int note(const Application& application) {
    all.push_back(application);
    all.back().loop = loop;
    return all.size() - 1;
  }
};

}  // namespace parallel::internals
