/** Colors, if the output is a terminal and they are not disabled. */
import type { Diagnostic } from '../../core/diagnostic.ts';

export interface Paint {
  readonly error: (text: string) => string;
  readonly warning: (text: string) => string;
  readonly info: (text: string) => string;
  readonly hint: (text: string) => string;
  readonly strong: (text: string) => string;
  readonly done: (text: string) => string;
}

const plain = (text: string): string => text;

/** Returns texts unchanged. */
export const NO_PAINT: Paint = { error: plain, warning: plain, info: plain, hint: plain, strong: plain, done: plain };

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
  done: colored(32, 39),
};

type Environment = Readonly<Record<string, string | undefined>>;

/** True if the stream is a terminal that can move its cursor. */
export function isTerminal(stream: { readonly isTTY?: boolean | undefined }, env: Environment): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb';
}

/** Colors for a stream; a non-empty NO_COLOR (no-color.org) and TERM=dumb disable them. */
export function paintFor(stream: { readonly isTTY?: boolean | undefined }, env: Environment): Paint {
  const isDisabled = (env['NO_COLOR'] ?? '') !== '';
  return isTerminal(stream, env) && !isDisabled ? COLORS : NO_PAINT;
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
