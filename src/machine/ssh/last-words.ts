/** The lines that a program has printed about its own failure. Pure. */
import { shortened } from '../../core/shortened.ts';

/** A line with which curlew begins to say why it fails: what follows is more of it, and at the end what to do. */
const FAILURE = /^error ([A-Z_]+): (.*)$/;
/** A finding in a file, right before that line; its hint may be on the next one. */
const FINDING = /^\S.*? (?:error|warning|info) [a-z0-9-]+\/[a-z0-9-]+: /;
const HINT = /^\s+hint: /;
/** Its message, causes, findings, the last lines of a hook, and the hint. */
const MAX_LINES = 60;
const MAX_LENGTH = 2000;
const LEFT_OUT = '…';

export interface LastWords {
  readonly add: (line: string) => void;
  /**
   * On one line: the last line, or all from the last one that curlew began with `error CODE:`, with the findings right before it.
   * Empty without lines.
   */
  readonly text: () => string;
  /** The same of what curlew has said: its code, and its hint apart. */
  readonly failure: () => { readonly code: string; readonly text: string; readonly hint: string } | undefined;
}

export function keepLastWords(): LastWords {
  let lines: string[] = [];
  let findings: string[] = [];
  let code: string | undefined;
  return {
    add: (line) => {
      const [, found, message] = FAILURE.exec(line) ?? [];
      const words = (message ?? line).trim();
      if (message !== undefined) {
        code = found;
        lines = [words, ...findings].filter((text) => text !== '');
      } else if (code !== undefined && words !== '') {
        push(lines, words);
      } else if (words !== '') {
        lines = [words];
      }
      if (FINDING.test(line) || (findings.length > 0 && HINT.test(line))) push(findings, words);
      else if (words !== '' || message !== undefined) findings = [];
    },
    text: () => joined(lines),
    failure: () => {
      if (code === undefined) return undefined;
      const [, hint] = /^hint: (.+)$/.exec(lines.at(-1) ?? '') ?? [];
      return { code, text: joined(hint === undefined ? lines : lines.slice(0, -1)), hint: hint ?? '' };
    },
  };
}

function joined(lines: readonly string[]): string {
  const text = lines.reduce((before, line) => `${before}${before.endsWith(':') ? ' ' : '; '}${line}`, '').slice(2);
  return shortened(text, MAX_LENGTH);
}

/** Commands on a control plane, and those of an operator that do the same; `machine remove` also changes the file of the cluster. */
const OURS: Readonly<Record<string, string>> = {
  'node drain': 'machine drain FILE',
  'cluster nodes': 'cluster status FILE',
};
const COMMAND = /(?:\bcurlew|\.\/tasks\.sh) ([a-z]+(?:-[a-z]+)*(?: [a-z]+)?)|\.\/(?:install|join|upgrade)\.sh/g;

/** The hint of curlew on a host, for the operator: their own commands, or else `on HOST: …`. */
export function hintFrom(host: string, hint: string): string {
  let isForHost = false;
  const ours = hint.replaceAll(COMMAND, (whole, name: string = '') => {
    const own = Object.hasOwn(OURS, name) ? OURS[name] : undefined;
    isForHost ||= own === undefined;
    return own === undefined ? whole : `curlew ${own}`;
  });
  return isForHost ? `on ${host}: ${ours}` : ours;
}

/** The beginning says what failed, and the end what to do. */
function push(lines: string[], line: string): void {
  lines.push(line);
  if (lines.length > MAX_LINES) lines.splice(MAX_LINES / 2, 2, LEFT_OUT);
}
