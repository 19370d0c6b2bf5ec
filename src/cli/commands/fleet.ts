/** `curlew fleet …`: clusters and the add-ons that they run, from files. */
import { FLEET_CHECK } from '../../app/requests/fleet.ts';
import { counted } from '../../core/counted.ts';
import { renderDiagnostic } from '../../core/diagnostic.ts';
import { ERROR_CODES } from '../../core/errors.ts';
import { commandFor } from '../command.ts';
import { paintDiagnostic } from '../render/paint.ts';

export const check = commandFor(FLEET_CHECK, {
  details:
    'Reads all YAML files of folders that say fleet.curlew.dev, and reports every mistake in one of them and between them. Contacts no cluster. Exits with status 11 if there is an error; warnings do not count.',
  examples: ['curlew fleet check fleet/'],
  run: async ({ request }, context) => (await import('../../app/fleet-check.ts')).checkFleet(request, context),
  render: ({ clusters, addons, diagnostics, errors, warnings }, _, paint) => {
    const sums = [
      counted(clusters, 'cluster'),
      counted(addons, 'add-on'),
      counted(errors, 'error'),
      counted(warnings, 'warning'),
    ];
    return [
      ...diagnostics.map((one) => paintDiagnostic(renderDiagnostic(one, one.source), one.severity, paint)),
      sums.join(', '),
    ].join('\n');
  },
  exitCode: ({ errors }) => (errors > 0 ? ERROR_CODES.SPEC_INVALID : 0),
});
