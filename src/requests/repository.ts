/** Requests about the files of add-ons. */
import { choice, flag, path, text, texts } from '../core/field.ts';
import { request } from '../core/request.ts';
import { HOOK_NAMES } from '../manifest/hooks.ts';

const DIR = { dir: path('DIR', 'folder that contains addons (default: .)', { located: true }) };

export const NEW = request('new', {
  name: text('<name>', 'name of the add-on', {
    operand: true,
    required: 'specify one name',
    hint: 'curlew new <name>',
  }),
  version: text('VERSION', 'first version (default: that of the chart, or 0.1.0)'),
  from: path('PATH', 'YAML of resources, a Chart.yaml, or the folder or archive of a chart'),
  hooks: texts('LIST', `all, or some of ${HOOK_NAMES.join(', ')}`),
  upstream: text(
    'URL',
    'where generate.sh downloads a version: an address with {version}, or a chart (oci://…, repository)',
  ),
  newest: text('URL', 'where generate.sh reads the newest version'),
  template: flag('also create template, whose generate.sh creates the next versions (default with --upstream)'),
  ...DIR,
});
const addon = text('<addon>', 'name of the add-on', { operand: true, offers: 'addon' });
const NEXT = {
  version: text('VERSION', 'the version (default: the newest upstream)'),
  force: flag('replace an existing version'),
  ...DIR,
};

export const GENERATE = request(
  'generate',
  { addon, ...NEXT },
  { list: flag('only list the add-ons with a generator') },
);
export const GENERATE_ONE = {
  name: 'generate',
  fields: { addon: { ...addon, required: 'specify one add-on' }, ...NEXT },
};
export const LIST_TEMPLATES = { name: 'list templates', fields: DIR };

export const ALL = { all: flag('show every finding, not just the first of identical ones') };

export const LINT = request(
  'lint',
  {
    addons: texts('path', 'paths, names, name/version or name-version (default: all)', {
      operand: true,
      offers: 'addon',
    }),
    fix: flag('fix what is safe: line endings, comments after directives, duplicate lines'),
    noShellcheck: flag('do not run shellcheck, even if it is installed'),
  },
  {
    ...ALL,
    format: choice(['text', 'github'], 'text, or github for annotations of a workflow run', { value: 'FORMAT' }),
    info: flag('also show remarks (always included in --json)'),
  },
);
const required = 'specify kurl and one folder';
const hint = 'curlew import kurl .';
const CHECKOUT = {
  path: path('PATH', 'folder of the checkout', { operand: true, required, hint }),
  out: path('DIR', 'write missing files to DIR, which may be PATH itself'),
  dryRun: flag('show which files would be written, and write nothing', { with: 'out' }),
};

export const IMPORT = request(
  'import',
  { tool: text('kurl', 'what the repository was made for', { operand: true, required, hint }), ...CHECKOUT },
  { notes: flag('also show notes (always included in --json)') },
);
export const IMPORT_REPOSITORY = { name: 'import', fields: CHECKOUT };
