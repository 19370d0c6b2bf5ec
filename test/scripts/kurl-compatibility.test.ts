/** The page of compatibility says what is so: names, definitions and variables are looked up. */
import { execa } from 'execa';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FLAG_ROWS } from '../../scripts/docs/kurl-flags.ts';
import { KURL_FUNCTIONS } from '../../src/kurl/compatibility/functions.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { kurlPage } from '../../scripts/docs/kurl-page.ts';
import { BIN_PROGRAMS, KURL_VERBS } from '../../src/kurl/compatibility/programs.ts';
import { rows, type Row } from '../../src/kurl/compatibility/rows.ts';
import { SETTING_ROWS } from '../../src/kurl/compatibility/settings.ts';
import { TASKS, taskOf } from '../../src/kurl/compatibility/tasks.ts';
import { VARIABLES } from '../../src/kurl/compatibility/variables.ts';
import { FLAGS } from '../../src/spec/flags.ts';
import { parseInstaller } from '../../src/spec/parse.ts';
import { settingOf, SETTINGS } from '../../src/spec/settings.ts';
import { shellVariables } from '../../src/spec/variables.ts';
import { share, type RunReport } from '../real-kurl/report.ts';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { kurlTool } from '../support/kurl-tool.ts';
import { suite } from '../support/suite.ts';

const test = suite('docs/kurl-compatibility.md');
const ROOT = join(import.meta.dirname, '../..');
const functions = KURL_FUNCTIONS.flatMap(([, all]) => all);
const variables = VARIABLES.flatMap(([, all]) => all);

/** What a shell prints that has the library. */
async function withLibrary(script: string): Promise<readonly string[]> {
  const load = `for file in '${ROOT}'/scripts/lib/*.sh; do source "$file"; done`;
  const { stdout } = await execa('bash', ['-c', `${load}\n${script}`], {
    extendEnv: false,
    env: { PATH: process.env['PATH'] },
  });
  return stdout.split('\n');
}

test('the page is what the tables make of it (npm run docs)', async () => {
  assert.is(await readFile(join(ROOT, 'docs/kurl-compatibility.md'), 'utf8'), kurlPage());
});

test('the tables are whole: 96 functions, 173 settings, all flags, each name once, each difference told', () => {
  assert.is(functions.length, 96);
  assert.is(SETTING_ROWS.length, 173);
  assert.is(SETTING_ROWS.length, SETTINGS.filter(({ variable }) => variable !== undefined).length);
  assert.is(FLAG_ROWS.length, Object.keys(FLAGS).length);
  const all: readonly (readonly Row[])[] = [
    functions,
    variables,
    SETTING_ROWS,
    FLAG_ROWS,
    BIN_PROGRAMS,
    KURL_VERBS,
    TASKS,
  ];
  for (const table of all) {
    assert.is(new Set(table.map(({ name }) => name)).size, table.length);
    for (const { status, note, name } of table) assert.ok(status === 'same' || note !== '', name);
  }
});

test("tasks of kURL's are commands, or known by name with dashes and underscores", async () => {
  for (const { name, status } of TASKS) {
    assert.is(COMMANDS.has(name), status !== 'absent', name);
    assert.is(taskOf(name.replaceAll('-', '_'))?.name, name);
  }
  const { exitCode, stderr } = await curlew(['taint_primaries'], { cwd: ROOT });
  assert.is(exitCode, 22);
  assert.match(stderr, /taint_primaries: a kURL task that curlew does not have\n +hint: .*kubectl/);
});

test('every function of the table is defined', async () => {
  const defined = new Set(await withLibrary('compgen -A function'));
  assert.equal(
    functions.map(({ name }) => name).filter((name) => !defined.has(name)),
    [],
  );
});

test('the comparison gives the numbers of the run that the page gives', async () => {
  const run = await readFile(join(ROOT, 'scripts/docs/kurl-run.json'), 'utf8');
  const { imported, ...report } = JSON.parse(run) as RunReport;
  const { works, differs, missing } = imported;
  const [ran] = share({ ...report, imported }, 'objects').split(' of ');
  const comparison = (await readFile(join(ROOT, 'docs/comparison.md'), 'utf8')).replaceAll(/\s+/g, ' ');
  for (const text of [
    `versions of ${ran} run`,
    `all ${works + differs + missing} versions, ${works} need`,
    `and ${differs} call`,
  ]) {
    assert.ok(comparison.includes(text), text);
  }
  assert.is(missing, 0);
});

test('what is absent ends with a clear message when it is called', async () => {
  for (const { name, status } of functions) {
    if (status !== 'absent') continue;
    const [said = ''] = await withLibrary(`kubectl() { return 0; }; (${name} a b c d e f) 2>&1; echo`);
    assert.match(said, /is not supported here/, name);
  }
});

/** The flags of kURL's scripts, in its documentation and in what they read. */
const KURL_FLAGS = `installer-spec-file airgap kurl-registry-ip ekco-address ekco-auth-token kurl-install-directory labels
storage-migration-ready-timeout dismiss-host-packages-preflight yes primary-host secondary-host force-reapply-addons
skip-system-package-install exclude-builtin-preflights exclude-builtin-host-preflights app-version-label ipv6
velero-restic-timeout velero-server-flags auto-upgrades-enabled additional-no-proxy-addresses cert-key control-plane
docker-registry-ip ekco-enable-internal-load-balancer ha kubernetes-cis-compliance kubernetes-cluster-name
aws-exclude-storage-class ignore-remote-load-images-prompt ignore-remote-upgrade-prompt container-log-max-size
container-log-max-files kubernetes-max-pods-per-node kubeadm-token kubeadm-token-ca-hash
kubernetes-load-balancer-use-first-primary kubernetes-master-address kubernetes-version
kubernetes-init-ignore-preflight-errors kubernetes-upgrade-ignore-preflight-errors load-balancer-address preflight-ignore
host-preflight-ignore preflight-ignore-warnings host-preflight-enforce-warnings preserve-docker-config
preserve-firewalld-config preserve-iptables-config preserve-selinux-config public-address private-address`;

test('every flag of kURL is taken, and no other; what fills a setting names one that is there', () => {
  assert.equal(Object.keys(FLAGS), KURL_FLAGS.split(/\s+/));
  for (const [name, meaning] of Object.entries(FLAGS)) {
    if (meaning.kind !== 'setting') continue;
    const [specName = '', field = ''] = meaning.setting.split('.');
    assert.ok(settingOf(specName, field)?.variable, name);
  }
});

/** What nobody but hooks sets and reads, what is made of the names of programs, and what is read by nobody any more. */
const OF_OTHERS = /^(?:BIN_\w+|DISABLE_REPORTING|SKIP_KUBERNETES_HOST|CEPH_DASHBOARD_URL|OBJECT_STORE_CLUSTER_HOST)$/;

test('a variable that is not absent stands in the code, and what a flag fills is not absent', async () => {
  const { stdout } = await execa('grep', ['-rhowE', '[A-Z][A-Z0-9_]+', 'src', 'scripts/lib', '--exclude-dir=migrate'], {
    cwd: ROOT,
  });
  const named = new Set(stdout.split('\n'));
  const there = variables.filter(({ status }) => status !== 'absent').map(({ name }) => name);
  assert.equal(
    there.filter((name) => !named.has(name) && !OF_OTHERS.test(name)),
    [],
  );
  const filled = Object.values(FLAGS).flatMap((meaning) => (meaning.kind === 'variable' ? [meaning.variable] : []));
  assert.equal(
    filled.filter((name) => !there.includes(name)),
    [],
  );
});

/** A value of each kind as it stands in YAML, and what its variable holds. */
const SAMPLES: Readonly<Record<string, readonly [yaml: string, variable: string]>> = {
  switch: ['true', '1'],
  text: ['value', 'value'],
  integer: ['7', '7'],
  texts: ['[a, b]', 'a,b'],
  document: ['{a: b}', ''],
};
const URL_SAMPLE = ['https://value.example/p.tar.gz', 'https://value.example/p.tar.gz'] as const;

function sampleOf(name: string): readonly [yaml: string, variable: string] {
  const [specName = '', field = ''] = name.split('.');
  const sample = field === 's3Override' ? URL_SAMPLE : SAMPLES[settingOf(specName, field)?.kind ?? ''];
  if (sample === undefined) throw new Error(`${name}: no sample`);
  return sample;
}

test('every setting fills its variable', () => {
  const keys = [...new Set(SETTING_ROWS.map(({ name }) => name.split('.')[0] ?? ''))];
  const spec = keys.map((key) => {
    const own = SETTING_ROWS.filter(({ name }) => name.startsWith(`${key}.`));
    return `  ${key}:\n${own.map(({ name }) => `    ${name.slice(key.length + 1)}: ${sampleOf(name)[0]}\n`).join('')}`;
  });
  const text = `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: all}\nspec:\n${spec.join('')}`;
  const { installer, diagnostics } = parseInstaller('spec.yaml', text);
  assert.equal(diagnostics, []);
  if (installer === undefined) throw new Error('no installer');
  const made = new Map(shellVariables(installer, new Map()));
  const wrong = SETTING_ROWS.filter(({ name, variable, status, note }) => {
    const value = made.get(variable);
    if (value === undefined) return true;
    // A remark tells that something else has a say in it.
    return status === 'same' && note === '' && value !== sampleOf(name)[1];
  });
  assert.equal(
    wrong.map(({ name, variable }) => `${name} ${variable}`),
    [],
  );
});

async function refusal(words: readonly string[]): Promise<string> {
  return kurlTool(words).then(String, String);
}

test('programs below bin/ are there or say which package brings them, as the table has it', async () => {
  for (const { name, status } of BIN_PROGRAMS) {
    const said = await refusal(name === 'kurl' ? [name, 'format-address', '::1'] : [name, '--no-such-flag']);
    assert.is(
      /not supported; put kURL's own program into bin of the install folder/.test(said),
      status === 'absent',
      `${name}: ${said}`,
    );
  }
});

test("verbs of kURL's program are answered or say which package brings them, as the table has it", async () => {
  for (const { name, status } of KURL_VERBS) {
    const said = await refusal(['kurl', ...name.split(' '), '--no-such-flag']);
    assert.is(
      /not supported; put kURL's own program into bin of the install folder/.test(said),
      status === 'absent',
      `${name}: ${said}`,
    );
  }
});

test('a table with a note of another form is refused', () => {
  let said = '';
  try {
    rows('a', { a: 'nearly the same' });
  } catch (error) {
    said = String(error);
  }
  assert.match(said, /a: nearly the same/);
});

test.run();
