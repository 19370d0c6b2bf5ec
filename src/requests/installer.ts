/** Requests about installer specs. */
import { flag, path } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { STORE, WEB } from './connection.ts';
import { FLAG_WORDS, NODE_SETTINGS, SOURCE } from './node.ts';
import { DOWNGRADE, SIGNED } from './trust.ts';

const operand = { operand: true, required: 'specify an installer spec' } as const;

const SPEC = { spec: path('SPEC', 'the installer spec', operand), ...FLAG_WORDS };
export type InstallerRequest = RequestOf<typeof SPEC>;

/** `bundle`, `dir` or `from` names the source of versions. */
const SPEC_AND_SOURCE = {
  ...SPEC,
  from: { ...SOURCE.from, help: 'use a store, or a web server with a store' },
  release: SOURCE.release,
  bundle: { ...SOURCE.bundle, help: 'use a bundle' },
  dir: { ...SOURCE.dir, help: 'use an unpacked bundle' },
  ...NODE_SETTINGS,
  ...SIGNED,
  ...DOWNGRADE,
  ...STORE,
  ...WEB,
};
export type InstallerSourceRequest = RequestOf<typeof SPEC_AND_SOURCE>;

export const INSTALLER_VALIDATE = request('installer validate', SPEC_AND_SOURCE);
export const INSTALLER_RESOLVE = request('installer resolve', SPEC_AND_SOURCE);
export const INSTALLER_ID = request('installer id', SPEC);

export const INSTALLER_ENV = request('installer env', {
  filled: flag('print only variables with a value'),
  ...SPEC_AND_SOURCE,
});
export const INSTALLER_MERGE = request('installer merge', {
  base: path('BASE', 'the base spec', { operand: true, required: 'specify a base and an overlay' }),
  overlay: path('OVERLAY', 'the overlay', { operand: true, required: 'specify a base and an overlay' }),
});
