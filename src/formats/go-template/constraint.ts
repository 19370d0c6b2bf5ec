/** Version constraints as in sprig's `semverCompare` (Masterminds/semver v3). Pure. */
import { UnfitValue } from './values.ts';

interface Version {
  readonly numbers: readonly [number, number, number];
  readonly pre: string;
}

const MAX_LENGTH = 512;
const PARTS = String.raw`v?(\d{1,15}|[xX*])(?:\.(\d{1,15}|[xX*]))?(?:\.(\d{1,15}|[xX*]))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?`;
const VERSION = /^v?(\d{1,15})(?:\.(\d{1,15}))?(?:\.(\d{1,15}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;
const RANGE = new RegExp(String.raw`\s*(${PARTS})\s+-\s+(${PARTS})\s*`, 'g');
const ONE = new RegExp(String.raw`(=|!=|>=|<=|=>|=<|>|<|~>|~|\^|)\s*${PARTS}(?=$|[\s,])[\s,]*`, 'y');

/** True if the version satisfies the constraint; an invalid one of either is an {@link UnfitValue}. */
export function satisfiesConstraint(constraint: string, text: string): boolean {
  const version = readVersion(text);
  if (version === undefined) throw new UnfitValue(`${JSON.stringify(text.slice(0, 80))} is not a semantic version`);
  if (constraint.length > MAX_LENGTH) throw new UnfitValue('the constraint is too long');
  const groups = constraint.replaceAll(
    RANGE,
    (all, ...parts: readonly string[]) => ` >=${parts[0] ?? ''} <=${parts[5] ?? ''} `,
  );
  return groups
    .split('||')
    .map(readGroup)
    .some((group) => {
      const allowsPre = group.some(({ pre }) => pre !== '');
      return group.every((one) => (version.pre === '' || allowsPre) && satisfiesCondition(one, version));
    });
}

function readVersion(text: string): Version | undefined {
  const [, major, minor = '0', patch = '0', pre = ''] = VERSION.exec(text) ?? [];
  return major === undefined ? undefined : { numbers: [Number(major), Number(minor), Number(patch)], pre };
}

interface Condition extends Version {
  readonly sign: string;
  /** How many of the numbers are given; the others match anything. */
  readonly precision: number;
}

function readGroup(text: string): readonly Condition[] {
  const conditions: Condition[] = [];
  const trimmed = text.trim();
  for (let at = 0; at < trimmed.length; at = ONE.lastIndex) {
    ONE.lastIndex = at;
    const match = ONE.exec(trimmed);
    if (match === null) throw new UnfitValue(`invalid constraint: ${JSON.stringify(trimmed.slice(0, 80))}`);
    const [, sign = '', ...parts] = match;
    const numbers = parts.slice(0, 3);
    const wild = numbers.findIndex((part) => part === undefined || /[xX*]/.test(part));
    const number = (index: number): number => (wild !== -1 && index >= wild ? 0 : Number(numbers[index]));
    conditions.push({
      sign,
      numbers: [number(0), number(1), number(2)],
      pre: parts[3] ?? '',
      precision: wild === -1 ? 3 : wild,
    });
  }
  if (conditions.length === 0) throw new UnfitValue(`invalid constraint: ${JSON.stringify(text.slice(0, 80))}`);
  return conditions;
}

function satisfiesCondition(condition: Condition, version: Version): boolean {
  const { sign, precision } = condition;
  const order = compare(version, condition);
  const isWithin = condition.numbers.slice(0, precision).every((number, at) => number === version.numbers[at]);
  if (sign === '' || sign === '=') return precision < 3 ? isWithin : order === 0;
  if (sign === '!=') return precision < 3 ? !isWithin : order !== 0;
  if (sign === '>') return precision < 3 ? order > 0 && !isWithin : order > 0;
  if (sign === '>=' || sign === '=>') return order >= 0;
  if (sign === '<') return order < 0;
  if (sign === '<=' || sign === '=<') return order <= 0 || (precision < 3 && isWithin);
  if (sign === '^') return order >= 0 && sameUpTo(version, condition, caretWidth(condition));
  return order >= 0 && sameUpTo(version, condition, Math.min(2, precision));
}

/** `^1.2` fixes the major version, `^0.2` also the minor version, `^0.0.3` all numbers. */
function caretWidth({ numbers, precision }: Condition): number {
  const first = numbers.findIndex((number) => number > 0);
  return Math.min(precision, (first === -1 ? 2 : first) + 1);
}

function sameUpTo(version: Version, { numbers }: Version, width: number): boolean {
  return numbers.slice(0, width).every((number, at) => number === version.numbers[at]);
}

function compare(a: Version, b: Version): number {
  for (const at of [0, 1, 2] as const) {
    if (a.numbers[at] !== b.numbers[at]) return a.numbers[at] - b.numbers[at];
  }
  if (a.pre === b.pre) return 0;
  if (a.pre === '' || b.pre === '') return a.pre === '' ? 1 : -1;
  return comparePre(a.pre.split('.'), b.pre.split('.'));
}

/** semver.org, item 11: numbers compare by value and precede text, text compares by characters, the longer list comes last. */
function comparePre(a: readonly string[], b: readonly string[]): number {
  for (const [at, left] of a.entries()) {
    const right = b[at];
    if (right === undefined) return 1;
    if (left === right) continue;
    const [leftIsNumber, rightIsNumber] = [/^\d+$/.test(left), /^\d+$/.test(right)];
    if (leftIsNumber && rightIsNumber) return Number(left) - Number(right);
    if (leftIsNumber !== rightIsNumber) return leftIsNumber ? -1 : 1;
    return left < right ? -1 : 1;
  }
  return a.length - b.length;
}
