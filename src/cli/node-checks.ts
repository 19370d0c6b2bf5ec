/** What a run asks of the machine, by its words and by the settings of kURL that mean the same. */
import { CurlewError } from '../core/errors.ts';
import type { Installer } from '../spec/installer.ts';
import { settingText } from '../runtime/preflight/situation.ts';
import type { Arguments, OptionSpecs } from './command.ts';
import { toolVersion } from '../app/version.ts';
import { CHECK_MODES, type CheckMode, type CheckRequest } from '../runtime/run/request.ts';

export const IGNORE_OPTION = {
  ignore: {
    type: 'string',
    multiple: true,
    value: 'TITLE',
    help: 'a host preflight that does not count, by its title; may be repeated',
  },
} satisfies OptionSpecs;

/** With --root the machine is not the one that is to be served: its fitness is told, but stops nothing. */
export function checksOf(args: Arguments, installer: Installer): CheckRequest {
  const isTrial = args.text('root') !== undefined;
  const mode = givenMode(args.text('preflights')) ?? defaultMode(installer, isTrial);
  return { mode, ignored: args.texts('ignore'), installer, builtIn: !isTrial, tool: toolVersion() };
}

function givenMode(word: string | undefined): CheckMode | undefined {
  const mode = CHECK_MODES.find((known) => known === word);
  if (word === undefined || mode !== undefined) return mode;
  throw new CurlewError('USAGE', `--preflights ${word}: known are ${CHECK_MODES.join(', ')}`);
}

function defaultMode(installer: Installer, isTrial: boolean): CheckMode {
  const isSet = (field: string): boolean => settingText({ installer }, 'kurl', field) !== '';
  if (isTrial || isSet('hostPreflightIgnore')) return 'ignore';
  return isSet('hostPreflightEnforceWarnings') ? 'enforce-warnings' : 'enforce';
}
