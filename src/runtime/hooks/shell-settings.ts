/** Settings as a file of shell assignments: quoted text that is never expanded. */
import { CurlewError } from '../../core/errors.ts';
import { shellQuote } from '../../core/shell-word.ts';
import { isReservedVariable } from '../../spec/variable-names.ts';
import type { ShellVariable } from '../../spec/variables.ts';

const NAME = /^[A-Z_][A-Z0-9_]*$/;
/**
 * Assignments of unexported variables. A variable of the same name in the caller's environment is hidden from hooks and their
 * children. `settings` are untrusted input, `own` comes from curlew.
 */
export function settingsText(settings: readonly ShellVariable[], own: readonly ShellVariable[]): string {
  for (const [name, value] of settings) {
    if (!NAME.test(name) || isReservedVariable(name)) {
      throw new CurlewError(
        'SPEC_INVALID',
        `settings: ${JSON.stringify(name.slice(0, 100))} cannot be a shell variable`,
      );
    }
    if (value.includes('\0')) throw new CurlewError('SPEC_INVALID', `settings: ${name} contains a NUL character`);
  }
  const lines = [...settings, ...own].map(([name, value]) => `unset -v ${name}\n${name}=${shellQuote(value)}\n`);
  return lines.join('');
}
