/** `curlew installer …`: validates, merges and resolves installer specs. */
import {
  INSTALLER_ENV,
  INSTALLER_ID,
  INSTALLER_MERGE,
  INSTALLER_RESOLVE,
  INSTALLER_VALIDATE,
} from '../../requests/installer.ts';
import type { Validated } from '../../app/installer.ts';
import { counted } from '../../core/counted.ts';
import { renderDiagnostic } from '../../core/diagnostic.ts';
import { ERROR_CODES } from '../../core/errors.ts';
import { assignment } from '../../spec/variables.ts';
import { commandFor } from '../command.ts';
import { columns } from '../render/columns.ts';
import { paintDiagnostic, type Paint } from '../render/paint.ts';

const FLAGS =
  "FLAGs are those of kURL's scripts, such as ha or labels=a=b; installer-spec-file=OVERLAY merges a second spec.";

export const validate = commandFor(INSTALLER_VALIDATE, {
  details: `Reports all mistakes at once, and exits with status 11 if one is an error. With --from, --bundle or --dir, it also reports versions that do not exist, and settings that the packages reject.\n\n${FLAGS}`,
  examples: ['curlew installer validate installer.yaml', 'curlew installer validate installer.yaml --from /srv/dist'],
  run: async ({ request }, context) => (await import('../../app/installer.ts')).validateSpec(request, context),
  render: (result, { request: { bundle, dir, from } }, paint) =>
    renderFindings(result, bundle !== undefined || dir !== undefined || from.length > 0, paint),
  exitCode: ({ valid }) => (valid ? 0 : ERROR_CODES.SPEC_INVALID),
});

export const merge = commandFor(INSTALLER_MERGE, {
  details: 'Prints the merged spec as YAML.',
  examples: ['curlew installer merge installer.yaml site.yaml > merged.yaml'],
  run: async ({ request }, context) => (await import('../../app/installer.ts')).mergeSpecs(request, context),
  render: ({ yaml }) => yaml.trimEnd(),
});

export const env = commandFor(INSTALLER_ENV, {
  details: `Prints what kURL's yamltobash writes, quoted for bash: values are never executed. With --from, --bundle or --dir, it resolves versions first.\n\n${FLAGS}`,
  examples: ['curlew installer env installer.yaml ha installer-spec-file=site.yaml --filled'],
  run: async ({ request }, context) => (await import('../../app/installer.ts')).specVariables(request, context),
  render: ({ variables }) =>
    Object.entries(variables)
      .map(([name, value]) => assignment(name, value))
      .join('\n'),
});

export const id = commandFor(INSTALLER_ID, {
  details: `Prints the seven digits by which kURL identifies a spec, regardless of its name and the order of its keys.\n\n${FLAGS}`,
  examples: ['curlew installer id installer.yaml'],
  run: async ({ request }, context) => (await import('../../app/installer.ts')).specId(request, context),
  render: ({ id }) => id,
});

export const resolve = commandFor(INSTALLER_RESOLVE, {
  details: `Prints the version of each add-on, and the reason.\n\n${FLAGS}`,
  examples: ['curlew installer resolve installer.yaml --from /srv/dist'],
  run: async ({ request }, context) => (await import('../../app/installer.ts')).resolveSpec(request, context),
  render: ({ addons }) => columns(addons.map(({ name, version, because }) => [name, version, because])).join('\n'),
});

function renderFindings({ files, valid, addons, diagnostics }: Validated, isCompared: boolean, paint: Paint): string {
  const count = (severity: string, thing: string): readonly string[] => {
    const number = diagnostics.filter((one) => one.severity === severity).length;
    return number === 0 ? [] : [counted(number, thing)];
  };
  const sums = [...count('error', 'error'), ...count('warning', 'warning'), ...count('info', 'remark')];
  const all = [valid ? `valid, ${counted(addons, 'add-on')}` : 'not valid', ...sums];
  const unknown = valid && !isCompared ? '; versions not checked (add --from STORE)' : '';
  return [
    ...diagnostics.map((one) => paintDiagnostic(renderDiagnostic(one, one.source), one.severity, paint)),
    `${files.join(' + ')}: ${all.join(', ')}${unknown}`,
  ].join('\n');
}
