"""Definitions (.kg) as Python sees them: a reader of the text that shares nothing with src/lang.

`read(text)` gives one `Op` for each op of a file. The text is taken to be right; what is wrong with
one is for `kernelgen check` to say. docs/language.md is the language.
"""

import dataclasses
import re

REDUCTIONS = {"sum", "prod", "max", "min", "mean", "argmax", "argmin", "any", "all"}
FUNCTIONS = {"min", "max"}  # those that are reductions, too
CONSTANTS = {"inf", "nan", "pi", "true", "false"}
LEVELS = [{"||"}, {"&&"}, {"<", "<=", ">", ">=", "==", "!="}, {"|"}, {"^"}, {"&"}, {"<<", ">>"},
          {"+", "-"}, {"*", "/", "%"}]
SUM, PRODUCT = 7, 8
TOKEN = re.compile(r"""\s*(?:\#[^\n]*\s*)*(?:
    (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][-+]?\d+)?)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign>->|\.\.|\|\||&&|<<|>>|<=|>=|==|!=|[-+*/%<>=!&|^~()\[\]{},:])
)""", re.X)


@dataclasses.dataclass(frozen=True)
class Number:
    value: object  # int or float


@dataclasses.dataclass(frozen=True)
class Name:
    """An index, a size, a param or a constant."""
    name: str


@dataclasses.dataclass(frozen=True)
class Read:
    tensor: str
    subscripts: tuple


@dataclasses.dataclass(frozen=True)
class Call:
    """A function; operators are functions of the name of their sign, negation is "neg"."""
    function: str
    arguments: tuple


@dataclasses.dataclass(frozen=True)
class Index:
    """A reduced index, or one on the left: `low..high` where it is written, or `relation bound`."""
    name: str
    low: object = None
    high: object = None
    relation: str = ""
    bound: object = None


@dataclasses.dataclass(frozen=True)
class Reduction:
    kind: str
    indices: tuple
    body: object


@dataclasses.dataclass
class Tensor:
    name: str
    dtype: str  # or a type variable
    dims: list  # expressions of sizes
    packed: bool = False  # in memory the last two dims are panels of 64 rows and 16 columns


@dataclasses.dataclass
class Statement:
    target: str
    indices: list  # of Index
    value: object


@dataclasses.dataclass
class Op:
    name: str
    inputs: list
    outputs: list
    variables: dict = dataclasses.field(default_factory=dict)  # name -> dtypes, the default first
    params: dict = dataclasses.field(default_factory=dict)  # name -> number
    statements: list = dataclasses.field(default_factory=list)
    rows: dict = dataclasses.field(default_factory=dict)  # "verify", "tune" -> list of {size: value}

    def sizes(self):
        """Names of the sizes, in the order in which dimensions mention them."""
        names = []
        for tensor in self.inputs + self.outputs:
            for dim in tensor.dims:
                names += [node.name for node in walk(dim) if isinstance(node, Name)]
        return [name for name in dict.fromkeys(names) if name not in self.params]


def walk(node):
    """The node and all below it, in the order of the text."""
    yield node
    if isinstance(node, Read):
        children = node.subscripts
    elif isinstance(node, Call):
        children = node.arguments
    elif isinstance(node, Reduction):
        ranges = [part for index in node.indices for part in (index.low, index.high, index.bound)]
        children = [part for part in ranges if part is not None] + [node.body]
    else:
        children = ()
    for child in children:
        yield from walk(child)


def replaced(node, values):
    """The expression with the names in `values` replaced by what they stand for."""
    def one(part):
        return None if part is None else replaced(part, values)
    if isinstance(node, Name):
        return values.get(node.name, node)
    if isinstance(node, Read):
        return Read(node.tensor, tuple(map(one, node.subscripts)))
    if isinstance(node, Call):
        return Call(node.function, tuple(map(one, node.arguments)))
    if isinstance(node, Reduction):
        indices = tuple(dataclasses.replace(index, low=one(index.low), high=one(index.high),
                                            bound=one(index.bound)) for index in node.indices)
        return Reduction(node.kind, indices, one(node.body))
    return node


def size_of(node, values):
    """The value of an expression of sizes and params."""
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Name):
        return values[node.name]
    if node.function == "ceil":  # of a quotient
        first, second = (size_of(part, values) for part in node.arguments[0].arguments)
        return -(-first // second)
    first, second = (size_of(argument, values) for argument in (node.arguments * 2)[:2])
    if node.function == "neg":
        return -first
    return {"+": lambda: first + second, "-": lambda: first - second,
            "*": lambda: first * second, "/": lambda: first // second,
            "%": lambda: first % second}[node.function]()


def number_of(word):
    is_integer = word.isdigit() or word[:2] in ("0x", "0X")
    return int(word, 16 if word[1:2] in ("x", "X") else 10) if is_integer else float(word)


class Reader:
    def __init__(self, text):
        self.tokens, at = [], 0
        while match := TOKEN.match(text, at):
            self.tokens.append((match.lastgroup, match.group(match.lastgroup)))
            at = match.end()
        if re.sub(r"#[^\n]*", "", text[at:]).strip():
            raise ValueError(f"not a definition: {text[at:at + 40]!r}")
        self.at = 0
        self.functions = {}  # of the file: name -> (parameters, body)

    def word(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at][1] if at < len(self.tokens) else ""

    def kind(self, at):
        return self.tokens[at][0] if at < len(self.tokens) else ""

    def take(self, expected=None):
        word = self.word()
        if expected is not None and word != expected:
            raise ValueError(f"expected {expected!r}, found {word!r}")
        self.at += 1
        return word

    def accept(self, word):
        found = self.word() == word
        self.at += found
        return found

    def separated(self, one, close):
        """one {"," one} close, or close alone."""
        found = []
        while not self.accept(close):
            if found:
                self.take(",")
            found.append(one())
        return found

    # ---- Expressions ----

    def level(self, lowest=0):
        left = self.unary()
        while True:
            level = next((n for n, signs in enumerate(LEVELS) if self.word() in signs), -1)
            if level < lowest:
                return left
            sign = self.take()
            left = Call(sign, (left, self.level(level + 1)))

    def unary(self):
        if self.accept("-"):
            return Call("neg", (self.unary(),))
        for sign in ("!", "~"):
            if self.accept(sign):
                return Call(sign, (self.unary(),))
        return self.primary()

    def primary(self):
        kind, word = self.kind(self.at), self.take()
        if kind == "number":
            return Number(number_of(word))
        if word == "(":
            inner = self.level()
            self.take(")")
            return inner
        if self.accept("["):
            return Read(word, tuple(self.separated(self.level, "]")))
        if self.word() != "(":
            return Name(word)
        if word in REDUCTIONS and (word not in FUNCTIONS or self.is_reduction()):
            return self.reduction(word)
        self.take("(")
        if word == "cast":
            dtype = self.take()
            self.take(",")
            return Call("cast", (Name(dtype), *self.separated(self.level, ")")))
        arguments = tuple(self.separated(self.level, ")"))
        if word not in self.functions:
            return Call(word, arguments)
        parameters, body = self.functions[word]
        return replaced(body, dict(zip(parameters, arguments)))

    def behind(self, at):
        """The place behind the bracket that closes the one at `at`."""
        depth = 0
        while at < len(self.tokens):
            depth += (self.tokens[at][1] in "([") - (self.tokens[at][1] in ")]")
            at += 1
            if depth == 0:
                break
        return at

    def is_reduction(self):
        """At the parenthesis behind max or min: is it `max(d) x[d]` and not `max(a, b)`?"""
        end, depth, commas = self.behind(self.at), 0, 0
        for at in range(self.at, end):
            word = self.tokens[at][1]
            depth += (word in "([") - (word in ")]")
            commas += depth == 1 and word == ","
            if depth == 1 and word == "in":
                return True
        word = self.tokens[end][1]
        if word in ("op", "fn"):  # what follows a function's body
            follows = False
        elif self.kind(end) == "name":  # the next statement is no operand
            opens = end + 1 < len(self.tokens) and self.tokens[end + 1][1] == "["
            follows = not opens or self.tokens[self.behind(end + 1)][1] != "="
        else:
            follows = self.kind(end) == "number" or word in ("(", "!", "~")
        return commas == 0 or follows or (word == "-" and commas != 1)

    def index(self):
        name = self.take()
        if self.accept("in"):
            low = self.level(SUM)
            self.take("..")
            return Index(name, low, self.level(SUM))
        if self.word() in ("<=", "<", ">=", ">"):
            return Index(name, relation=self.take(), bound=self.level(SUM))
        return Index(name)

    def reduction(self, kind):
        self.take("(")
        indices = tuple(self.separated(self.index, ")"))
        return Reduction(kind, indices, self.level(PRODUCT))

    # ---- Ops ----

    def tensor(self):
        name = self.take()
        self.take(":")
        packed = self.word(1) != "[" and self.accept("packed")
        dtype = self.take()
        self.take("[")
        return Tensor(name, dtype, self.separated(lambda: self.level(SUM), "]"), packed)

    def number(self):
        negative = self.accept("-")
        word = self.take()
        value = number_of(word)
        return -value if negative else value

    def clauses(self, op):
        while self.word() in ("where", "param"):
            if self.take() == "param":
                more = True
                while more:
                    name = self.take()
                    self.take("=")
                    op.params[name] = self.number()
                    more = self.accept(",")
                continue
            op.variables.update(self.type_variables())

    def type_variables(self):
        found, name = {}, None
        while self.word() not in ("where", "param", "{"):
            if self.word(1) == "in":
                name = self.take()
                found[name] = []
                self.take("in")
            found[name].append(self.take())
            self.accept(",")
        return found

    def goal(self, op):
        if not self.accept("goal"):
            return
        self.take("{")
        while not self.accept("}"):
            entry = self.take()
            if entry not in ("verify", "tune"):
                continue  # its words are no names of entries
            if self.word(1) == "in":
                continue  # ranges of values, whose words are none either
            names, rows, row = [], [], []
            while not self.accept("="):
                names.append(self.take())
            while self.kind(self.at) == "number" or self.word() == ",":
                if self.accept(","):
                    continue
                row.append(int(self.take()))
                if len(row) == len(names):
                    rows.append(dict(zip(names, row)))
                    row = []
            op.rows.setdefault(entry, []).extend(rows)

    def op(self):
        self.take("op")
        name = self.take()
        self.take("(")
        inputs = self.separated(self.tensor, ")")
        self.take("->")
        self.take("(")
        op = Op(name, inputs, self.separated(self.tensor, ")"))
        self.clauses(op)
        self.take("{")
        while not self.accept("}"):
            target = self.take()
            self.take("[")
            indices = self.separated(self.index, "]")
            self.take("=")
            op.statements.append(Statement(target, indices, self.level()))
        self.goal(op)
        return op

    def function(self):
        self.take("fn")
        name = self.take()
        self.take("(")
        parameters = self.separated(self.take, ")")
        self.take("=")
        self.functions[name] = parameters, self.level()

    def file(self):
        ops = []
        while self.at < len(self.tokens):
            if self.word() == "fn":
                self.function()
            else:
                ops.append(self.op())
        return ops


def read(text):
    return Reader(text).file()
