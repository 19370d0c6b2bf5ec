/** `curlew doctor`: checks what works on this machine. */
import { DOCTOR } from '../../requests/own.ts';
import { visible } from '../../core/diagnostic.ts';
import { ERROR_CODES } from '../../core/errors.ts';
import { TAGS } from '../../runtime/preflight/report.ts';
import { commandFor } from '../command.ts';

export const command = commandFor(DOCTOR, {
  details: `Checks what the commands of curlew use on this machine, and says how to get what is missing. Changes nothing, shows no secret, and waits at most five seconds.

  Exit status: 0, or 21 if a named command or the store cannot work. curlew preflight checks the requirements of a spec.`,
  examples: [
    'curlew doctor',
    'curlew doctor bundle --from s3://bucket/dist',
    'curlew doctor install load-images --json',
  ],
  run: async ({ request }, context) => (await import('../../app/doctor.ts')).doctor(request, context),
  render: (findings, _, paint) => {
    const colors = { pass: paint.info, warn: paint.warning, fail: paint.error };
    return findings
      .flatMap(({ check, verdict, message, hint }) => [
        `${colors[verdict](TAGS[verdict])} ${visible(`${check}: ${message}`)}`,
        ...(hint === undefined ? [] : [`       ${paint.hint('hint:')} ${visible(hint)}`]),
      ])
      .join('\n');
  },
  exitCode: (findings) => (findings.some(({ verdict }) => verdict === 'fail') ? ERROR_CODES.PREFLIGHT_FAILED : 0),
});
