/** Go's text/template, second step: parses pieces into a tree. Pure. */
import { TemplateProblem, type TemplatePiece, type Token } from './lex.ts';

export type Operand =
  | { readonly type: 'dot'; readonly offset: number }
  | { readonly type: 'variable'; readonly name: string; readonly offset: number }
  | { readonly type: 'constant'; readonly value: string | number | boolean | undefined; readonly offset: number }
  | { readonly type: 'call'; readonly name: string; readonly offset: number }
  | { readonly type: 'pipeline'; readonly pipeline: Pipeline; readonly offset: number };

/** `.A.B`, `$x.A`, `(…).A`: a value, and fields selected from it in turn. */
export interface Term {
  readonly operand: Operand;
  readonly fields: readonly Token[];
}

export interface Pipeline {
  readonly offset: number;
  /** Each is a function with its arguments, or a value; its result is the last argument of the next. */
  readonly commands: readonly (readonly Term[])[];
}

export interface TemplateAssignment {
  readonly names: readonly string[];
  readonly declares: boolean;
}

export type Branching = 'if' | 'with' | 'range';

export type Node =
  | { readonly type: 'literal'; readonly text: string; readonly offset: number }
  | { readonly type: 'value'; readonly pipeline: Pipeline; readonly assignment: TemplateAssignment | undefined }
  | { readonly type: 'leave'; readonly how: 'break' | 'continue'; readonly offset: number }
  | {
      readonly type: Branching;
      readonly offset: number;
      readonly assignment: TemplateAssignment | undefined;
      readonly pipeline: Pipeline;
      readonly body: readonly Node[];
      readonly otherwise: readonly Node[];
    };

const MAX_DEPTH = 100;
const BRANCHES: readonly string[] = ['if', 'with', 'range'] satisfies readonly Branching[];
const ABSENT: readonly string[] = ['define', 'template', 'block'];

function isBranching(word: string | undefined): word is Branching {
  return word !== undefined && BRANCHES.includes(word);
}

/** Parses the whole tree; throws {@link TemplateProblem}. */
export function parseTemplate(pieces: readonly TemplatePiece[]): readonly Node[] {
  const reader = { pieces, at: 0 };
  const { nodes, end } = readBody(reader, { depth: 0, opened: undefined, loops: 0 });
  if (end !== undefined) throw new TemplateProblem(`{{${end.word}}} without an opening action`, end.offset);
  return nodes;
}

interface Reader {
  readonly pieces: readonly TemplatePiece[];
  at: number;
}

interface Around {
  readonly depth: number;
  readonly opened: { readonly word: string; readonly offset: number } | undefined;
  readonly loops: number;
}

interface End {
  readonly word: 'end' | 'else';
  readonly tokens: readonly Token[];
  readonly offset: number;
}

function readBody(reader: Reader, around: Around): { readonly nodes: readonly Node[]; readonly end: End | undefined } {
  const nodes: Node[] = [];
  while (reader.at < reader.pieces.length) {
    const piece = reader.pieces[reader.at];
    reader.at += 1;
    if (piece === undefined) break;
    if (piece.type === 'literal') {
      nodes.push(piece);
      continue;
    }
    const [first] = piece.tokens;
    const word = first?.kind === 'name' ? first.text : undefined;
    const rest = dropBlank(piece.tokens.slice(1));
    if (word === 'end' || word === 'else') return { nodes, end: { word, tokens: rest, offset: piece.offset } };
    if (isBranching(word)) nodes.push(readBranch(reader, word, rest, piece.offset, around));
    else if (word === 'break' || word === 'continue') {
      if (around.loops === 0) throw new TemplateProblem(`${word} outside a range`, piece.offset);
      nodes.push({ type: 'leave', how: word, offset: piece.offset });
    } else if (word !== undefined && ABSENT.includes(word)) {
      throw new TemplateProblem(
        `${word} is not supported`,
        first?.offset ?? piece.offset,
        'write the text itself instead',
      );
    } else nodes.push({ type: 'value', ...readAssigned(piece.tokens, piece.offset) });
  }
  if (around.opened !== undefined) {
    throw new TemplateProblem(`this ${around.opened.word} has no end`, around.opened.offset, 'add {{kurl end }}');
  }
  return { nodes, end: undefined };
}

function dropBlank(tokens: readonly Token[]): readonly Token[] {
  return tokens[0]?.kind === 'blank' ? tokens.slice(1) : tokens;
}

function readBranch(reader: Reader, type: Branching, tokens: readonly Token[], offset: number, around: Around): Node {
  if (around.depth >= MAX_DEPTH) throw new TemplateProblem('actions are nested too deeply', offset);
  const { pipeline, assignment } = readAssigned(tokens, offset);
  const inner: Around = {
    depth: around.depth + 1,
    opened: { word: type, offset },
    loops: around.loops + (type === 'range' ? 1 : 0),
  };
  const { nodes: body, end } = readBody(reader, inner);
  const base = { type, offset, assignment, pipeline, body } as const;
  if (end?.word !== 'else') {
    if (end !== undefined && end.tokens.length > 0) throw unexpected(end.tokens[0]);
    return { ...base, otherwise: [] };
  }
  const [word] = end.tokens;
  if (word === undefined) {
    const { nodes: otherwise, end: last } = readBody(reader, { ...inner, loops: around.loops });
    if (last?.word === 'else') throw new TemplateProblem('this is a second else', last.offset);
    return { ...base, otherwise };
  }
  if (word.text !== type || type === 'range') throw unexpected(word);
  // `else if` is an if inside the else, closed by the same end.
  return { ...base, otherwise: [readBranch(reader, type, dropBlank(end.tokens.slice(1)), word.offset, inner)] };
}

function unexpected(token: Token | undefined): TemplateProblem {
  return new TemplateProblem(`unexpected ${JSON.stringify(token?.text ?? 'end')}`, token?.offset ?? 0);
}

/** `$x := pipeline`, `$i, $x := pipeline`, `$x = pipeline`, or a pipeline alone. */
function readAssigned(
  tokens: readonly Token[],
  offset: number,
): { readonly pipeline: Pipeline; readonly assignment: TemplateAssignment | undefined } {
  const words = tokens.filter(({ kind }) => kind !== 'blank');
  const at = words.findIndex(({ kind, text }) => kind === 'sign' && (text === ':=' || text === '='));
  if (at === -1) return { pipeline: readPipeline(tokens, offset), assignment: undefined };
  const sign = words[at];
  const names = words.slice(0, at).filter(({ text }) => text !== ',');
  const commas = at - names.length;
  if (names.length === 0 || names.length > 2 || commas !== names.length - 1) throw unexpected(sign);
  if (names.some(({ kind, text }) => kind !== 'variable' || text === '')) throw unexpected(names[0]);
  const rest = tokens.slice(tokens.findIndex((token) => token === sign) + 1);
  return {
    pipeline: readPipeline(dropBlank(rest), offset),
    assignment: { names: names.map(({ text }) => text), declares: sign?.text === ':=' },
  };
}

function readPipeline(tokens: readonly Token[], offset: number): Pipeline {
  const reader = { tokens, at: 0 };
  const pipeline = readCommands(reader, offset, 0);
  const token = tokens[reader.at];
  if (token !== undefined) throw unexpected(token);
  return pipeline;
}

interface TokenReader {
  readonly tokens: readonly Token[];
  at: number;
}

function isSign(token: Token | undefined, text: string): boolean {
  return token?.kind === 'sign' && token.text === text;
}

function readCommands(reader: TokenReader, offset: number, depth: number): Pipeline {
  if (depth > MAX_DEPTH) throw new TemplateProblem('parentheses are nested too deeply', offset);
  const commands: (readonly Term[])[] = [];
  let terms: Term[] = [];
  const finish = (at: number): void => {
    if (terms.length === 0) throw new TemplateProblem('a value or function is missing', at);
    const [first, second] = terms;
    const isCall = first?.operand.type === 'call' && first.fields.length === 0;
    if (second !== undefined && !isCall) {
      throw new TemplateProblem('only a function can be followed by arguments', second.operand.offset);
    }
    commands.push(terms);
    terms = [];
  };
  for (;;) {
    const token = reader.tokens[reader.at];
    if (token?.kind === 'blank') {
      reader.at += 1;
      continue;
    }
    if (token === undefined || isSign(token, ')')) {
      finish(token?.offset ?? offset);
      return { offset, commands };
    }
    if (isSign(token, '|')) {
      finish(token.offset);
      reader.at += 1;
      continue;
    }
    terms.push(readTerm(reader, token, depth));
  }
}

function readTerm(reader: TokenReader, token: Token, depth: number): Term {
  reader.at += 1;
  if (token.kind === 'field') {
    const fields = [token, ...readFields(reader)];
    return { operand: { type: 'dot', offset: token.offset }, fields };
  }
  const operand = readOperand(reader, token, depth);
  return { operand, fields: readFields(reader) };
}

function readOperand(reader: TokenReader, token: Token, depth: number): Operand {
  const { kind, text, offset } = token;
  if (kind === 'text') return { type: 'constant', value: text, offset };
  if (kind === 'number') return { type: 'constant', value: Number(text.replaceAll('_', '')), offset };
  if (kind === 'variable') return { type: 'variable', name: text, offset };
  if (kind === 'name') {
    if (text === 'true' || text === 'false') return { type: 'constant', value: text === 'true', offset };
    if (text === 'nil') return { type: 'constant', value: undefined, offset };
    return { type: 'call', name: text, offset };
  }
  if (isSign(token, '.')) return { type: 'dot', offset };
  if (!isSign(token, '(')) throw unexpected(token);
  const pipeline = readCommands(reader, offset, depth + 1);
  if (!isSign(reader.tokens[reader.at], ')')) {
    throw new TemplateProblem('this parenthesis is not closed', offset, 'add )');
  }
  reader.at += 1;
  return { type: 'pipeline', pipeline, offset };
}

/** Fields follow without blanks in between. */
function readFields(reader: TokenReader): readonly Token[] {
  const from = reader.at;
  while (reader.tokens[reader.at]?.kind === 'field') reader.at += 1;
  return reader.tokens.slice(from, reader.at);
}
