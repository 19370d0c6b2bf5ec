/** Colours, where a terminal shows them and nobody has said no. */
import type { Diagnostic } from '../../core/diagnostic.ts';

export interface Paint {
  readonly error: (text: string) => string;
  readonly warning: (text: string) => string;
  readonly info: (text: string) => string;
  readonly hint: (text: string) => string;
  readonly strong: (text: string) => string;
}

const plain = (text: string): string => text;

/** Leaves every text as it is. */
export const NO_PAINT: Paint = { error: plain, warning: plain, info: plain, hint: plain, strong: plain };

/** Select Graphic Rendition of ECMA-48, and back to what it was. */
function coloured(on: number, off: number): (text: string) => string {
  return (text) => `\u001b[${on}m${text}\u001b[${off}m`;
}

const bold = coloured(1, 22);
const COLOURS: Paint = {
  error: (text) => bold(coloured(31, 39)(text)),
  warning: (text) => bold(coloured(33, 39)(text)),
  info: bold,
  hint: coloured(36, 39),
  strong: bold,
};

type Environment = Readonly<Record<string, string | undefined>>;

/** True if the stream is a terminal that can move its cursor. */
export function isTerminal(stream: { readonly isTTY?: boolean | undefined }, env: Environment): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb';
}

/** Colours for what is written to `stream`; NO_COLOR (no-color.org), if not empty, and TERM=dumb switch them off. */
export function paintFor(stream: { readonly isTTY?: boolean | undefined }, env: Environment): Paint {
  const refused = (env['NO_COLOR'] ?? '') !== '';
  return isTerminal(stream, env) && !refused ? COLOURS : NO_PAINT;
}

/** A finding as `renderDiagnostic` gives it, with colours. */
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
