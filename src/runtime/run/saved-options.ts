/** Command-line options that are saved with a plan. */

export type OptionKind = 'path' | 'text' | 'texts' | 'places' | 'flag';

/** `--set` is not included: settings may be secret, and only their digest is saved. */
export const SAVED_OPTIONS: Readonly<Record<string, OptionKind>> = {
  bundle: 'path',
  dir: 'path',
  from: 'places',
  release: 'text',
  installer: 'path',
  'install-dir': 'path',
  root: 'path',
  network: 'text',
  env: 'texts',
  unconfined: 'flag',
  reapply: 'flag',
  'allow-downgrade': 'flag',
  'drop-previous': 'flag',
  prune: 'flag',
  'keep-data': 'flag',
  adopt: 'flag',
  'skip-images': 'flag',
  preflights: 'text',
  ignore: 'texts',
  yes: 'flag',
  'hook-timeout': 'text',
  's3-endpoint': 'text',
  's3-region': 'text',
  's3-profile': 'text',
  's3-path-style': 'flag',
  'allow-http': 'texts',
  'ca-file': 'path',
  config: 'path',
};
