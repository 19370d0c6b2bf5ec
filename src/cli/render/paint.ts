/** Colors, if the output is a terminal and they are not disabled. */
import type { Diagnostic } from '../../core/diagnostic.ts';

export interface Paint {
  readonly error: (text: string) => string;
  readonly warning: (text: string) => string;
  readonly info: (text: string) => string;
  readonly hint: (text: string) => string;
  readonly strong: (text: string) => string;
  /** The beginning of a line about one thing of a result: empty unless the output is a terminal. */
  readonly mark: (kind: Mark) => string;
}

/** The state of a line's subject: done, as it was, or in need of attention. */
export type Mark = 'done' | 'same' | 'left';

const MARKS: Readonly<Record<Mark, string>> = { done: '✓ ', same: '· ', left: '! ' };

const plain = (text: string): string => text;

/** Returns texts unchanged. */
export const NO_PAINT: Paint = {
  error: plain,
  warning: plain,
  info: plain,
  hint: plain,
  strong: plain,
  mark: () => '',
};

/** Select Graphic Rendition of ECMA-48, with the sequence that resets it. */
function colored(on: number, off: number): (text: string) => string {
  return (text) => `\u001b[${on}m${text}\u001b[${off}m`;
}

const bold = colored(1, 22);
const COLORS: Paint = {
  error: (text) => bold(colored(31, 39)(text)),
  warning: (text) => bold(colored(33, 39)(text)),
  info: bold,
  hint: colored(36, 39),
  strong: bold,
  mark: (kind) => (kind === 'same' ? MARKS[kind] : colored(kind === 'done' ? 32 : 33, 39)(MARKS[kind])),
};
const MARKED: Paint = { ...NO_PAINT, mark: (kind) => MARKS[kind] };

type Environment = Readonly<Record<string, string | undefined>>;

/** True if the stream is a terminal that can move its cursor. */
export function isTerminal(stream: { readonly isTTY?: boolean | undefined }, env: Environment): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb';
}

/** Colors and marks for a stream; a non-empty NO_COLOR (no-color.org) disables the colors, TERM=dumb both. */
export function paintFor(stream: { readonly isTTY?: boolean | undefined }, env: Environment): Paint {
  if (!isTerminal(stream, env)) return NO_PAINT;
  return (env['NO_COLOR'] ?? '') === '' ? COLORS : MARKED;
}

/** Colors the output of `renderDiagnostic`. */
export function paintDiagnostic(text: string, severity: Diagnostic['severity'], paint: Paint): string {
  const [headline = '', ...rest] = text.split('\n');
  const cut = headline.indexOf(` ${severity} `);
  const first =
    cut === -1
      ? headline
      : `${paint.strong(headline.slice(0, cut))} ${paint[severity](severity)}${headline.slice(cut + severity.length + 1)}`;
  const others = rest.map((line) => {
    if (/^\s+\^+$/.test(line)) return paint[severity](line);
    return line.startsWith('  hint: ') ? `  ${paint.hint('hint:')}${line.slice('  hint:'.length)}` : line;
  });
  return [first, ...others].join('\n');
}
