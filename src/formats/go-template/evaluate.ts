/** Go's text/template, last step: evaluates a tree with data to text. Pure; bounded in steps and size. */
import { nearest } from '../../core/nearest.ts';
import type { Budget } from './budget.ts';
import { FUNCTIONS } from './functions.ts';
import { TemplateProblem, type Token } from './lex.ts';
import type { TemplateAssignment, Node, Operand, Pipeline, Term } from './parse.ts';
import { isList, isTrue, isValueMap, valueKind, shown, UnfitValue, type Value, type ValueMap } from './values.ts';

/** A piece of output, and its origin in the template. */
export interface Stretch {
  readonly text: string;
  readonly offset: number;
  /** The text is copied from the template. */
  readonly verbatim: boolean;
}

type Scope = Map<string, Value>;

/**
 * Which names that the data does not have are errors: none, those of its top level, all (`nested`), or those of its top level and names
 * that begin in upper case (`cased`). By the last two, keys of labels and annotations never are, and missing values print as Go's do.
 */
export type Strictness = boolean | 'nested' | 'cased';

/** Maps whose keys people choose: what one object has, another may not have. */
const OPEN: ReadonlySet<string> = new Set(['labels', 'annotations']);

interface State {
  readonly data: ValueMap;
  readonly strict: Strictness;
  readonly out: Stretch[];
  /** Innermost scope last. */
  readonly scopes: Scope[];
  readonly budget: Budget;
  /** Maps that are {@link OPEN}. */
  readonly open: WeakSet<ValueMap>;
}

/** Evaluates a tree; throws {@link TemplateProblem}. */
export function evaluateTemplate(
  nodes: readonly Node[],
  data: ValueMap,
  { strict, budget }: { readonly strict: Strictness; readonly budget: Budget },
): readonly Stretch[] {
  const scopes: Scope[] = [new Map<string, Value>([['', data]])];
  const state: State = { data, strict, out: [], scopes, budget, open: new WeakSet() };
  try {
    runBody(nodes, data, state);
  } catch (error) {
    // The call stack is exhausted: a list contains lists thousands of levels deep.
    if (error instanceof RangeError) throw new TemplateProblem('values are nested too deeply', 0);
    throw error;
  }
  return state.out;
}

type Exit = 'break' | 'continue' | undefined;

function runBody(nodes: readonly Node[], dot: Value, state: State): Exit {
  state.scopes.push(new Map());
  try {
    for (const node of nodes) {
      const exit = runNode(node, dot, state);
      if (exit !== undefined) return exit;
    }
    return undefined;
  } finally {
    state.scopes.pop();
  }
}

function emit(state: State, stretch: Stretch): void {
  state.budget.output(stretch.text.length, stretch.offset);
  state.out.push(stretch);
}

function runNode(node: Node, dot: Value, state: State): Exit {
  if (node.type === 'literal') {
    state.budget.step(node.offset);
    emit(state, { text: node.text, offset: node.offset, verbatim: true });
    return undefined;
  }
  if (node.type === 'leave') return node.how;
  const value = pipelineValue(node.pipeline, dot, state);
  if (node.type === 'value' && node.assignment !== undefined) {
    assign(node.assignment, [value], state, node.pipeline.offset);
    return undefined;
  }
  state.budget.work([value], node.pipeline.offset);
  if (node.type === 'value') {
    const isMissing = value === undefined && typeof state.strict === 'string';
    emit(state, { text: isMissing ? '<no value>' : shown(value), offset: node.pipeline.offset, verbatim: false });
    return undefined;
  }
  if (node.type === 'range') return runRange(node, value, dot, state);
  state.scopes.push(new Map());
  try {
    if (node.assignment !== undefined) assign(node.assignment, [value], state, node.offset);
    if (!isTrue(value)) return runBody(node.otherwise, dot, state);
    return runBody(node.body, node.type === 'with' ? value : dot, state);
  } finally {
    state.scopes.pop();
  }
}

function runRange(node: Extract<Node, { readonly body: unknown }>, value: Value, dot: Value, state: State): Exit {
  let iterations = 0;
  for (const [key, item] of entriesOf(value, node.offset)) {
    iterations += 1;
    state.budget.step(node.offset);
    state.scopes.push(new Map());
    try {
      const { assignment } = node;
      if (assignment !== undefined) {
        assign(assignment, assignment.names.length === 1 ? [item] : [key, item], state, node.offset);
      }
      if (runBody(node.body, item, state) === 'break') break;
    } finally {
      state.scopes.pop();
    }
  }
  return iterations === 0 ? runBody(node.otherwise, dot, state) : undefined;
}

function* entriesOf(value: Value, offset: number): Generator<readonly [Value, Value]> {
  if (value === undefined) return;
  if (isList(value)) {
    yield* value.entries();
  } else if (isValueMap(value)) {
    for (const key of Object.keys(value).toSorted()) yield [key, value[key]];
  } else if (typeof value === 'number') {
    for (let at = 0; at < value; at += 1) yield [at, at];
  } else {
    throw new TemplateProblem(`range cannot iterate over ${valueKind(value)}`, offset);
  }
}

function assign({ names, declares }: TemplateAssignment, values: readonly Value[], state: State, offset: number): void {
  for (const [at, name] of names.entries()) {
    const scope = declares ? state.scopes.at(-1) : state.scopes.findLast((one) => one.has(name));
    if (scope === undefined) throw new TemplateProblem(`$${name} is not declared`, offset, `write $${name} := …`);
    scope.set(name, values[at]);
  }
}

function pipelineValue({ commands, offset }: Pipeline, dot: Value, state: State): Value {
  let value: Value;
  for (const [at, command] of commands.entries()) {
    state.budget.step(offset);
    value = commandValue(command, at === 0 ? [] : [value], dot, state);
  }
  return value;
}

function commandValue(command: readonly Term[], piped: readonly Value[], dot: Value, state: State): Value {
  const [first, ...rest] = command;
  if (first === undefined) return undefined;
  if (first.operand.type === 'call' && first.fields.length === 0) {
    return call(first.operand, rest, piped, dot, state);
  }
  if (piped.length > 0) {
    throw new TemplateProblem('only a function can follow |', first.operand.offset);
  }
  return termValue(first, dot, state);
}

type Call = Extract<Operand, { readonly type: 'call' }>;

function call(
  { name, offset }: Call,
  terms: readonly Term[],
  piped: readonly Value[],
  dot: Value,
  state: State,
): Value {
  state.budget.step(offset);
  if (name === 'and' || name === 'or') return shortCircuit(name, terms, piped, dot, state, offset);
  const row = FUNCTIONS.get(name);
  if (row === undefined) {
    const near = nearest(name, [...FUNCTIONS.keys(), 'and', 'or']);
    throw new TemplateProblem(`unknown function ${JSON.stringify(name)}`, offset, near && `did you mean ${near}?`);
  }
  const values = [...terms.map((term) => termValue(term, dot, state)), ...piped];
  if (values.length < row.least || values.length > (row.most ?? values.length)) {
    const expected = row.most === row.least ? `${row.least}` : `at least ${row.least}`;
    throw new TemplateProblem(`${name} takes ${expected} arguments, not ${values.length}`, offset);
  }
  state.budget.work(values, offset);
  try {
    const result = row.run(...values);
    state.budget.work([result], offset);
    return result;
  } catch (error) {
    if (error instanceof UnfitValue) throw new TemplateProblem(`${name}: ${error.message}`, offset);
    throw error;
  }
}

function shortCircuit(
  name: 'and' | 'or',
  terms: readonly Term[],
  piped: readonly Value[],
  dot: Value,
  state: State,
  offset: number,
): Value {
  if (terms.length + piped.length === 0) throw new TemplateProblem(`${name} takes at least 1 argument, not 0`, offset);
  let value: Value;
  for (const term of terms) {
    value = termValue(term, dot, state);
    state.budget.work([value], offset);
    if (isTrue(value) === (name === 'or')) return value;
  }
  return piped.length > 0 ? piped[0] : value;
}

function termValue({ operand, fields }: Term, dot: Value, state: State): Value {
  let value = operandValue(operand, dot, state);
  const isRoot = value === state.data;
  for (const field of fields) value = fieldOf(value, field, state, () => yamlPath(fields, isRoot));
  return value;
}

function operandValue(operand: Operand, dot: Value, state: State): Value {
  switch (operand.type) {
    case 'dot':
      return dot;
    case 'constant':
      return operand.value;
    case 'pipeline':
      return pipelineValue(operand.pipeline, dot, state);
    case 'call':
      return call(operand, [], [], dot, state);
    case 'variable': {
      const scope = state.scopes.findLast((one) => one.has(operand.name));
      if (scope === undefined) throw new TemplateProblem(`$${operand.name} is not declared`, operand.offset);
      return scope.get(operand.name);
    }
  }
}

/** The fields as YAML has them: `.Cluster.spec.cidrBlocks` for `.Cluster.Spec.CIDRBlocks`; a root keeps its name. */
function yamlPath(fields: readonly Token[], isRoot: boolean): string {
  const lower = (text: string): string =>
    text.replace(/^(?:[A-Z]+(?=[A-Z][a-z])|[A-Z]+(?![a-z])|[A-Z])/, (start) => start.toLowerCase());
  return fields.map(({ text }, at) => `.${isRoot && at === 0 ? text : lower(text)}`).join('');
}

/**
 * A key of a map. Go's names for the settings of a spec may differ in case.
 */
function fieldOf(value: Value, { text, offset }: Token, state: State, yaml: () => string): Value {
  if (value === undefined) return undefined;
  if (!isValueMap(value)) throw new TemplateProblem(`${valueKind(value)} has no field ${text}`, offset);
  if (Object.hasOwn(value, text)) {
    const { [text]: found } = value;
    if (OPEN.has(text) && isValueMap(found)) state.open.add(found);
    return found;
  }
  const names = Object.keys(value);
  state.budget.work([names], offset);
  const { strict } = state;
  const isTop = value === state.data;
  if (typeof strict === 'boolean' && !(strict && isTop)) {
    const other = names.find((key) => key.toLowerCase() === text.toLowerCase());
    return other === undefined ? undefined : value[other];
  }
  if (!isTop && typeof strict === 'string') {
    if (OPEN.has(text) || state.open.has(value)) return undefined;
    if (/^[A-Z]/.test(text))
      throw new TemplateProblem(`unknown field .${text}`, offset, `names are as in YAML: ${yaml()}`);
    if (strict === 'cased') return undefined;
  }
  const near = nearest(text, names);
  throw new TemplateProblem(`unknown field .${text}`, offset, near && `did you mean .${near}?`);
}
