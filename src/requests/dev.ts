/** The request of the development loop. */
import { flag, path, texts } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { INPUTS, OUT } from './build.ts';
import { NODE_HOOKS, NODE_REACH, NODE_SETTINGS, SOURCE } from './node.ts';

export const DEV = request(
  'dev',
  {
    addons: texts('addon', 'names, name/version or paths; of a name, the newest version', {
      operand: true,
      offers: 'addon',
      required: 'specify an add-on',
      hint: 'curlew dev NAME',
    }),
    root: path(
      'DIR',
      'folder of the trial: hooks run in a sandbox, and their writes go there (default: trial in --out)',
    ),
    ...NODE_REACH,
    installer: SOURCE.installer,
    ...NODE_SETTINGS,
    ...NODE_HOOKS,
    ...OUT,
    ...INPUTS,
  },
  { watch: flag('build and install again after each change of their files, until Ctrl-C') },
);
export type DevRequest = RequestOf<typeof DEV.fields>;
