/** What a program has printed about its own failure. Pure. */

/** A line with which curlew begins to say why it fails: what follows is more of it, and at the end what to do. */
const FAILURE = /^error [A-Z_]+: (.*)$/;
/** Its message, causes, findings, the last lines of a hook, and the hint. */
const MAX_LINES = 60;
const MAX_LENGTH = 2000;

export interface LastWords {
  readonly add: (line: string) => void;
  /** On one line: the last line, or all from the last one that curlew began with `error CODE:`. Empty without lines. */
  readonly text: () => string;
}

export function keepLastWords(): LastWords {
  let lines: string[] = [];
  let isFailure = false;
  return {
    add: (line) => {
      const [, message] = FAILURE.exec(line) ?? [];
      const words = (message ?? line).trim();
      if (message !== undefined) isFailure = true;
      if (words === '') return;
      if (message !== undefined || !isFailure) lines = [words];
      else if (lines.length < MAX_LINES) lines.push(words);
    },
    text: () => cut(lines.reduce((text, line) => `${text}${text.endsWith(':') ? ' ' : '; '}${line}`, '').slice(2)),
  };
}

/** The beginning says what failed, and the end what to do. */
function cut(text: string): string {
  const half = MAX_LENGTH / 2;
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, half)} … ${text.slice(-half)}`;
}
