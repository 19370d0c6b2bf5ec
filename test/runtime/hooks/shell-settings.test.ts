import { execa } from 'execa';
import * as fc from 'fast-check';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { parseInstaller } from '../../../src/spec/parse.ts';
import { SECTION_NAMES, SETTINGS } from '../../../src/spec/settings.ts';
import { shellVariables } from '../../../src/spec/variables.ts';
import { settingsText } from '../../../src/runtime/hooks/shell-settings.ts';
import { shellQuote } from '../../../src/core/shell-word.ts';
import * as assert from '../../support/assert.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { packagesOf, run, tracer } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('settings for the shell');

test('any text survives bash unchanged', async () => {
  const texts = fc.sample(fc.string({ unit: 'binary', maxLength: 40 }), 300).map((text) => text.replaceAll('\0', ''));
  const hostile = ['$(touch x)', '`id`', `it's`, '"', '\\', '!!', 'a\nb', '-n', '~', '* ?', '${HOME}', ''];
  const all = [...texts, ...hostile].map((text) => Buffer.from(text).toString());
  const script = all.map((text) => `printf '%s\\0' ${shellQuote(text)}`).join('\n');
  const { stdout } = await execa('bash', ['--norc'], { input: script });
  assert.equal(stdout.split('\0').slice(0, -1), all);
});

test('a setting is no longer exported when the caller had exported it', async () => {
  const text = settingsText([['DEMO_TOKEN', 'new']], [['DIR', '.']]);
  const { stdout } = await execa(
    'bash',
    ['--norc', '-c', `${text}\necho "$DEMO_TOKEN $DIR"; env | grep -c DEMO || true`],
    {
      env: { DEMO_TOKEN: 'old' },
    },
  );
  assert.is(stdout, 'new .\n0');
});

for (const name of [
  'BASH_ENV',
  'CURLEW_CONTROL',
  'PATH',
  'LD_PRELOAD',
  'a b',
  'X=1;id',
  '',
  '1A',
  'IFS',
  'DIR',
  'POSIXLY_CORRECT',
]) {
  test(`${JSON.stringify(name)} cannot be the name of a setting`, () => {
    assert.throwsWith(() => settingsText([[name, 'x']], []), 'SPEC_INVALID', /cannot be a shell variable/);
  });
}

test('an add-on may be called bashful', () => {
  assert.is(settingsText([['BASHFUL_VERSION', '1']], []), "unset -v BASHFUL_VERSION\nBASHFUL_VERSION='1'\n");
});

test('a NUL character in a setting is refused', () => {
  assert.throwsWith(() => settingsText([['DEMO_X', 'a\0b']], []), 'SPEC_INVALID', /DEMO_X contains a NUL/);
});

test('no value of a spec is ever run: not when hooks read it, not in templates', async () => {
  await using box = await tree();
  const pwned = box.at('pwned');
  const run1 = `touch ${pwned}`;
  const values = {
    substitution: `$(${run1})`,
    backticks: `\`${run1}\``,
    nested: `\${X:-$(${run1})}$((a[$(${run1})]))`,
    quotes: `'; ${run1}; '"; ${run1}; "`,
    lines: `a\n${run1}\n\n`,
    heredoc: `x\nCURLEW_END_OF_TEMPLATE\n${run1}\n`,
    assignment: `x; ${run1} #`,
    escapes: `\\'; ${run1}; \\x27\\047%s%n\\`,
    unicode: 'ü ☃ \u{1f9ea} \u2028 \u00a0 \u202e',
    control: '\u0001\u0007\u001b[31m\u007f',
    dash: '-n -e',
    globs: '* ? [a] ~ !! {a,b}',
    huge: `$(${run1})`.repeat(10_000),
  };
  const spec = {
    apiVersion: 'cluster.kurl.sh/v1beta1',
    kind: 'Installer',
    spec: { aaa: { version: '1.0.0', ...values } },
  };
  const { installer, diagnostics } = parseInstaller('spec', JSON.stringify(spec));
  if (installer === undefined) throw new Error(JSON.stringify(diagnostics));
  const names = Object.keys(values);
  const variables = names.map((name) => `AAA_${name.toUpperCase()}`);
  const install = `aaa() {
    for name in ${variables.join(' ')}; do printf '%s\\0' "\${!name}" >>values; done
    for name in ${variables.join(' ')}; do
      printf 'a: $%s' "$name" >template.yaml
      render_yaml_file template.yaml >"$name.1"
      render_yaml_file_2 template.yaml >"$name.2"
    done
    AAA_CARRIED="$AAA_QUOTES$AAA_SUBSTITUTION$AAA_LINES"
  }
  aaa_post_init() { printf '%s' "$AAA_CARRIED" >carried; logStep "$AAA_UNICODE"; }`;
  await run(box, await packagesOf(bundleOf([tracer('aaa', install)])), {
    variables: shellVariables(installer, new Map()),
  });
  const texts = Object.values(values);
  assert.equal((await readFile(box.at('node/values'), 'utf8')).split('\0').slice(0, -1), texts);
  for (const [index, text] of texts.entries()) {
    for (const kind of ['1', '2']) {
      const rendered = await readFile(box.at('node', `${variables[index] ?? ''}.${kind}`), 'utf8');
      assert.is(rendered, `a: ${text}\n`, `${variables[index] ?? ''} by render ${kind}`);
    }
  }
  assert.is(await readFile(box.at('node/carried'), 'utf8'), values.quotes + values.substitution + values.lines);
  assert.not.ok(existsSync(pwned));
});

/** What the kernel answers, by a way of its own. */
async function routeSource(version: '-4' | '-6', target: string): Promise<string> {
  const { stdout } = await execa('ip', ['-o', version, 'route', 'get', target], { reject: false });
  return / src ([0-9a-fA-F.:]+)/.exec(stdout ?? '')?.[1] ?? '';
}

test('the address of this machine is that of its default route, unless the spec names another', async () => {
  for (const [variables, expected] of [
    [[], await routeSource('-4', '203.0.113.1')],
    [[['IPV6_ONLY', '1']], await routeSource('-6', '2001:db8::1')],
    [[['PRIVATE_ADDRESS', '192.0.2.9']], '192.0.2.9'],
  ] as const) {
    await using box = await tree();
    const install = 'aaa() { printf %s "${PRIVATE_ADDRESS?}" >address; }';
    await run(box, await packagesOf(bundleOf([tracer('aaa', install)])), { variables });
    assert.is(await readFile(box.at('node/address'), 'utf8'), expected);
  }
});

test('a boolean that is true by default in a hook is switched off by false, and is true without a value', async () => {
  for (const [banner, expected] of [
    [undefined, 'on'],
    [true, 'on'],
    [false, 'off'],
  ] as const) {
    await using box = await tree();
    const spec = { aaa: { version: '1.0.0', banner } };
    const document = { apiVersion: 'cluster.kurl.sh/v1beta1', kind: 'Installer', spec };
    const { installer, diagnostics } = parseInstaller('spec', JSON.stringify(document));
    if (installer === undefined) throw new Error(JSON.stringify(diagnostics));
    const variables = shellVariables(installer, new Map());
    const install = 'aaa() { if [[ -n "${AAA_BANNER-1}" ]]; then printf on >banner; else printf off >banner; fi; }';
    await run(box, await packagesOf(bundleOf([tracer('aaa', install)])), { variables });
    assert.is(await readFile(box.at('node/banner'), 'utf8'), expected);
  }
});

test('every setting of kURL holds hostile text as text, for a real bash', async () => {
  await using box = await tree();
  const pwned = box.at('pwned');
  const hostile = `$x \`touch ${pwned}\` $(touch ${pwned}) '; touch ${pwned}; " \\ \n$HOME \${HOME}\n!! # %s`;
  const filled: string[] = [];
  const spec: Record<string, Record<string, unknown>> = {};
  for (const { specName, field, kind, variable } of SETTINGS) {
    const version = SECTION_NAMES.includes(specName) ? {} : { version: '1' };
    const fields = (spec[specName] ??= version);
    const isOwn = field !== 'version' && field !== 's3Override';
    if (isOwn && (kind === 'text' || kind === 'texts')) {
      fields[field] = kind === 'text' ? hostile : [hostile];
      if (variable !== undefined) filled.push(variable);
    }
  }
  const document = { apiVersion: 'cluster.kurl.sh/v1beta1', kind: 'Installer', spec };
  const { installer, diagnostics } = parseInstaller('spec', JSON.stringify(document));
  if (installer === undefined) throw new Error(JSON.stringify(diagnostics));
  const text = settingsText(shellVariables(installer, new Map()), []);
  const script = `${text}\nfor name in ${filled.join(' ')}; do printf '%s\\0' "\${!name}"; done`;
  const { stdout } = await execa('bash', ['--norc', '-eu'], { input: script });
  assert.equal(
    stdout.split('\0').slice(0, -1),
    filled.map(() => hostile),
  );
  assert.ok(filled.length > 50);
  assert.not.ok(existsSync(pwned));
});

test.run();
