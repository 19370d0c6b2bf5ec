/** Flags in the syntax of Go, as in kURL's programs: `-name value`, `--name=value`, and `-name` alone for switches. */
import { CurlewError } from '../../core/errors.ts';

export interface GoFlags {
  readonly values: ReadonlyMap<string, string>;
  readonly switches: ReadonlySet<string>;
  readonly operands: readonly string[];
}

/** The flags of a program. */
export interface GoFlagSpec {
  readonly values: readonly string[];
  readonly switches: readonly string[];
  /** Flags are allowed after operands, as with cobra; otherwise parsing stops at the first operand. */
  readonly anywhere?: boolean;
}

/** Throws `USAGE` for an unknown flag, or a flag without its value. */
export function parseGoFlags(
  tool: string,
  args: readonly string[],
  { values, switches, anywhere = false }: GoFlagSpec,
): GoFlags {
  const texts = new Map<string, string>();
  const on = new Set<string>();
  const operands: string[] = [];
  const queue = [...args];
  for (let arg = queue.shift(); arg !== undefined; arg = queue.shift()) {
    if (arg === '--') break;
    if (!arg.startsWith('-') || arg === '-') {
      operands.push(arg);
      if (anywhere) continue;
      break;
    }
    const [, name = '', value] = /^--?([^=]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (switches.includes(name)) {
      if (value !== 'false') on.add(name);
    } else if (values.includes(name)) {
      const argument = value ?? queue.shift();
      if (argument === undefined) throw new CurlewError('USAGE', `curlew kurl ${tool}: -${name} requires a value`);
      texts.set(name, argument);
    } else {
      throw new CurlewError('USAGE', `curlew kurl ${tool}: unknown flag ${arg}`);
    }
  }
  return { values: texts, switches: on, operands: [...operands, ...queue] };
}

/** The value of a required flag. */
export function requiredFlag(tool: string, { values }: GoFlags, name: string): string {
  const value = values.get(name) ?? '';
  if (value === '') throw new CurlewError('USAGE', `curlew kurl ${tool}: -${name} is missing`);
  return value;
}

/** The error for what only kURL's own package contains. */
export function notSupported(what: string, hint?: string): CurlewError {
  const message = `${what}: not supported; put kURL's own program into bin of the install folder`;
  return new CurlewError('UNSUPPORTED', message, { hint });
}
