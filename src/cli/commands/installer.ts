/** `curlew installer …`: validates, merges and resolves installer specs. */
import type { InstallerRequest, Validated } from '../../app/installer.ts';
import { counted } from '../../core/counted.ts';
import { renderDiagnostic } from '../../core/diagnostic.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import { assignment } from '../../spec/variables.ts';
import { command, useCase, type OptionSpecs } from '../command.ts';
import { RUN_OPTIONS } from '../node-options.ts';
import { STORE_OPTIONS, WEB_OPTIONS } from '../options.ts';
import { columns } from '../render/columns.ts';
import { paintDiagnostic, type Paint } from '../render/paint.ts';

const mergeSpecs = useCase(async () => (await import('../../app/installer.ts')).mergeSpecs);
const resolveSpec = useCase(async () => (await import('../../app/installer.ts')).resolveSpec);
const specId = useCase(async () => (await import('../../app/installer.ts')).specId);
const specVariables = useCase(async () => (await import('../../app/installer.ts')).specVariables);
const validateSpec = useCase(async () => (await import('../../app/installer.ts')).validateSpec);

const FLAGS =
  "FLAGs are those of kURL's scripts, such as ha or labels=a=b; installer-spec-file=OVERLAY merges a second spec.";

const { bundle, dir, from, release, set } = RUN_OPTIONS;

const SOURCE_OPTIONS = {
  from: { ...from, help: 'use a store, or a web server with a store' },
  release,
  bundle: { ...bundle, help: 'use a bundle' },
  dir: { ...dir, help: 'use an unpacked bundle' },
  set,
  ...STORE_OPTIONS,
  ...WEB_OPTIONS,
} satisfies OptionSpecs;

function specOf([spec, ...flags]: readonly string[]): InstallerRequest {
  if (spec === undefined) throw new CurlewError('USAGE', 'specify an installer spec');
  return { spec, flags };
}

export const validateCommand = command({
  name: 'installer validate',
  operands: 'SPEC [FLAG…]',
  details: `Reports all mistakes at once, and exits with status 11 if one is an error. With --from, --bundle or --dir, it also reports versions that do not exist, and settings that the packages reject.\n\n${FLAGS}`,
  examples: ['curlew installer validate installer.yaml', 'curlew installer validate installer.yaml --from /srv/dist'],
  options: SOURCE_OPTIONS,
  run: async ({ operands, options }, context) => validateSpec({ ...options, ...specOf(operands) }, context),
  render: (result, _, paint) => renderFindings(result, paint),
  exitCode: ({ valid }) => (valid ? 0 : ERROR_CODES.SPEC_INVALID),
});

export const mergeCommand = command({
  name: 'installer merge',
  operands: 'BASE OVERLAY',
  details: 'Prints the merged spec as YAML.',
  examples: ['curlew installer merge installer.yaml site.yaml > merged.yaml'],
  options: {},
  run: async ({ operands: [base, overlay] }, context) => {
    if (base !== undefined && overlay !== undefined) return mergeSpecs({ base, overlay }, context);
    throw new CurlewError('USAGE', 'specify a base and an overlay');
  },
  render: ({ yaml }) => yaml.trimEnd(),
});

export const envCommand = command({
  name: 'installer env',
  operands: 'SPEC [FLAG…]',
  details: `Prints what kURL's yamltobash writes, quoted for bash: values are never executed. With --from, --bundle or --dir, it resolves versions first.\n\n${FLAGS}`,
  examples: ['curlew installer env installer.yaml ha installer-spec-file=site.yaml --filled'],
  options: { filled: { type: 'boolean', help: 'print only variables with a value' }, ...SOURCE_OPTIONS },
  run: async ({ operands, options }, context) => specVariables({ ...options, ...specOf(operands) }, context),
  render: ({ variables }) =>
    Object.entries(variables)
      .map(([name, value]) => assignment(name, value))
      .join('\n'),
});

export const idCommand = command({
  name: 'installer id',
  operands: 'SPEC [FLAG…]',
  details: `Prints the seven digits by which kURL identifies a spec, regardless of its name and the order of its keys.\n\n${FLAGS}`,
  examples: ['curlew installer id installer.yaml'],
  options: {},
  run: async ({ operands }, context) => specId(specOf(operands), context),
  render: ({ id }) => id,
});

export const resolveCommand = command({
  name: 'installer resolve',
  operands: 'SPEC [FLAG…]',
  details: `Prints the version of each add-on, and the reason.\n\n${FLAGS}`,
  examples: ['curlew installer resolve installer.yaml --from /srv/dist'],
  options: SOURCE_OPTIONS,
  run: async ({ operands, options }, context) => resolveSpec({ ...options, ...specOf(operands) }, context),
  render: ({ addons }) => columns(addons.map(({ name, version, because }) => [name, version, because])).join('\n'),
});

function renderFindings({ files, valid, addons, diagnostics }: Validated, paint: Paint): string {
  const count = (severity: string, thing: string): readonly string[] => {
    const number = diagnostics.filter((one) => one.severity === severity).length;
    return number === 0 ? [] : [counted(number, thing)];
  };
  const sums = [...count('error', 'error'), ...count('warning', 'warning'), ...count('info', 'remark')];
  const all = [valid ? `valid, ${counted(addons, 'add-on')}` : 'not valid', ...sums];
  return [
    ...diagnostics.map((one) => paintDiagnostic(renderDiagnostic(one, one.source), one.severity, paint)),
    `${files.join(' + ')}: ${all.join(', ')}`,
  ].join('\n');
}
