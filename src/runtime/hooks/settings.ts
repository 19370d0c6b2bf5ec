/** Settings as a file of shell assignments: plain text, nothing in it is ever expanded. */
import { CurlewError } from '../../core/errors.ts';
import { isReservedVariable } from '../../spec/variable-names.ts';

export type ShellVariable = readonly [name: string, value: string];

const NAME = /^[A-Z_][A-Z0-9_]*$/;
/** Any text as one word of bash. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * Assignments of unexported variables, one a line; a variable of the same name in the caller's environment is hidden
 * from hooks and their children. `settings` come from outside, `own` from this tool.
 */
export function settingsText(settings: readonly ShellVariable[], own: readonly ShellVariable[]): string {
  for (const [name, value] of settings) {
    if (!NAME.test(name) || isReservedVariable(name)) {
      throw new CurlewError(
        'SPEC_INVALID',
        `settings: ${JSON.stringify(name.slice(0, 100))} cannot be a shell variable`,
      );
    }
    if (value.includes('\0')) throw new CurlewError('SPEC_INVALID', `settings: ${name} holds a NUL character`);
  }
  const lines = [...settings, ...own].map(([name, value]) => `unset -v ${name}\n${name}=${shellQuote(value)}\n`);
  return lines.join('');
}
