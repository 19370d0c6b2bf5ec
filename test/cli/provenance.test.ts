import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { digestOf, hexOf } from '../../src/core/digest.ts';
import { readPublicKey } from '../../src/formats/signing/keys.ts';
import { verifyStatement } from '../../src/formats/signing/statement.ts';
import * as assert from '../support/assert.ts';
import { bundleOfPackages, deltaOf } from '../support/deltas.ts';
import { lockedPackage } from '../support/described.ts';
import { makeInventory } from '../../src/ship/bundle/delta/inventory.ts';
import { writePackage } from '../support/packages.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFolder } from '../support/web-server.ts';

const test = suite('cli/provenance', { timeoutMs: 60_000 });

type Env = Readonly<Record<string, string>>;

async function boxWithPackage(): Promise<Tree> {
  const box = await tree();
  const { name, version, files, extra } = lockedPackage();
  await writePackage(box.at('web.tar.gz'), name, version, files, extra);
  await mkdir(box.at('parts'));
  return box;
}

interface Statement {
  readonly subject: readonly { readonly name: string; readonly digest: Readonly<Record<string, string>> }[];
  readonly predicate: {
    readonly buildDefinition: { readonly resolvedDependencies: readonly Readonly<Record<string, unknown>>[] };
    readonly runDetails: {
      readonly builder: { readonly id: string };
      readonly metadata?: { readonly invocationId: string };
    };
  };
}

/** The statement that these words and this environment lead to. */
async function stated(box: Tree, words: readonly string[], env: Env = {}): Promise<Statement> {
  const { exitCode, stderr } = await runCommand(['provenance', 'web.tar.gz', ...words], box.path, env);
  assert.is(exitCode, 0, stderr);
  return JSON.parse(await readFile(box.at('web.tar.gz.provenance.json'), 'utf8')) as Statement;
}

const GITHUB = {
  GITHUB_ACTIONS: 'true',
  GITHUB_SERVER_URL: 'https://github.example',
  GITHUB_WORKFLOW_REF: 'team/addons/.github/workflows/publish.yml@refs/heads/main',
  GITHUB_REPOSITORY: 'team/addons',
  GITHUB_REF: 'refs/heads/main',
  GITHUB_RUN_ID: '7',
  GITHUB_RUN_ATTEMPT: '2',
  GITHUB_SHA: 'a'.repeat(40),
  GITHUB_TOKEN: 'hush',
};

const GITLAB = {
  GITLAB_CI: 'true',
  CI_PROJECT_URL: 'https://gitlab.example/team/addons',
  CI_RUNNER_ID: '12',
  CI_JOB_URL: 'https://gitlab.example/team/addons/-/jobs/9',
  CI_COMMIT_REF_NAME: 'main',
  CI_COMMIT_SHA: 'b'.repeat(40),
};

for (const [title, words, env, builder, source, run] of [
  ['nobody', [], {}, 'urn:curlew:builder:unnamed', undefined, undefined],
  [
    'a workflow of GitHub Actions',
    [],
    GITHUB,
    'https://github.example/team/addons/.github/workflows/publish.yml@refs/heads/main',
    { uri: 'git+https://github.example/team/addons@refs/heads/main', digest: { gitCommit: 'a'.repeat(40) } },
    'https://github.example/team/addons/actions/runs/7/attempts/2',
  ],
  [
    'a runner of GitLab',
    [],
    GITLAB,
    'https://gitlab.example/team/addons/-/runners/12',
    { uri: 'git+https://gitlab.example/team/addons@main', digest: { gitCommit: 'b'.repeat(40) } },
    'https://gitlab.example/team/addons/-/jobs/9',
  ],
  [
    'whom the operator names',
    ['--builder', 'https://ci.example/builder', '--commit', 'cafe123'],
    {},
    'https://ci.example/builder',
    { digest: { gitCommit: 'cafe123' } },
    undefined,
  ],
] as const) {
  test(`the builder is ${title}`, async () => {
    await using box = await boxWithPackage();
    const { subject, predicate } = await stated(box, words, env);
    const { buildDefinition, runDetails } = predicate;
    assert.is(runDetails.builder.id, builder);
    assert.is(runDetails.metadata?.invocationId, run);
    const [first] = buildDefinition.resolvedDependencies;
    if (source === undefined) assert.match(String(first?.['uri']), /^pkg:oci/);
    else assert.equal(first, source);
    assert.equal(subject[0], {
      name: 'web.tar.gz',
      digest: { sha256: hexOf(digestOf(await readFile(box.at('web.tar.gz')))) },
    });
    assert.not.match(JSON.stringify(predicate), 'hush');
  });
}

test('a signed statement is verified by its key, of packages and of bundles', async () => {
  await using box = await boxWithPackage();
  await writeFile(box.at('b.tar.gz'), (await bundleOfPackages([lockedPackage()])).bytes);
  await runCommand(['keygen', 'our'], box.path);
  const made = await runCommand(['provenance', 'web.tar.gz', 'b.tar.gz', '--sign', 'our.key'], box.path);
  assert.is(made.exitCode, 0, made.stderr);
  assert.match(made.stdout, /^web\.tar\.gz\.provenance\.sigstore\.json: signed, built by urn:curlew:builder:unnamed$/m);
  const key = readPublicKey(await readFile(box.at('our.pub'), 'utf8'), 'our.pub');
  for (const name of ['web.tar.gz', 'b.tar.gz']) {
    const from = `${name}.provenance.sigstore.json`;
    const text = await readFile(box.at(from), 'utf8');
    const { statement } = verifyStatement({ text, from, about: name }, [key], (found) => found, '');
    assert.is(statement.predicateType, 'https://slsa.dev/provenance/v1');
    assert.is(statement.subjects[0]?.digest, digestOf(await readFile(box.at(name))));
  }
});

test('it is made twice with the same bytes, and goes where one asks for it once', async () => {
  await using box = await boxWithPackage();
  await runCommand(['provenance', 'web.tar.gz'], box.path);
  const first = await readFile(box.at('web.tar.gz.provenance.json'));
  assert.is((await runCommand(['provenance', 'web.tar.gz', '-o', 'other.json'], box.path)).exitCode, 0);
  assert.ok(first.equals(await readFile(box.at('other.json'))));
  assert.is((await runCommand(['provenance', 'web.tar.gz', '-o', 'other.json'], box.path)).exitCode, 24);
  assert.is((await runCommand(['provenance', 'web.tar.gz', '-o', 'other.json', '--force'], box.path)).exitCode, 0);
});

test('of an address it goes into the current folder, under a name without secrets; of parts, beside them', async () => {
  await using box = await boxWithPackage();
  await using server = await serveFolder(box.path);
  await runCommand(['provenance', 'web.tar.gz', '-o', 'file.json'], box.path);
  const fetched = await runCommand(['provenance', `${server.url}/web.tar.gz?token=hush`], box.path);
  assert.is(fetched.exitCode, 0, fetched.stderr);
  const statement = await readFile(box.at('file.json'), 'utf8');
  assert.is(await readFile(box.at('web.tar.gz.provenance.json'), 'utf8'), statement);
  const twice = await runCommand(['provenance', 'web.tar.gz', `${server.url}/web.tar.gz`], box.path);
  assert.is(twice.exitCode, 64);
  assert.match(twice.stderr, /write web\.tar\.gz\.provenance\.json: .* for another file/);

  const split = await runCommand(['split', 'web.tar.gz', '--size', '2K', '--to', 'parts'], box.path);
  assert.is(split.exitCode, 0, split.stderr);
  const joined = await runCommand(['provenance', 'parts/web.tar.gz.parts.json'], box.path);
  assert.is(joined.exitCode, 0, joined.stderr);
  assert.is(await readFile(box.at('parts/web.tar.gz.provenance.json'), 'utf8'), statement);
});

for (const [title, words, exitCode, message] of [
  ['no file', [], 64, /specify files/],
  ['two files and one output', ['web.tar.gz', 'web.tar.gz', '-o', 'x'], 64, /only one with --output/],
  ['a file, for standard output', ['web.tar.gz', '-o', '-'], 64, /the output must be a file/],
  ['a builder that is no URI', ['web.tar.gz', '--builder', 'me'], 64, /not a URI/],
  [
    'a builder with a password',
    ['web.tar.gz', '--builder', 'https://a:hush@b/'],
    64,
    /must not contain user info or a query/,
  ],
  ['a commit that is none', ['web.tar.gz', '--commit', 'main'], 64, /not a git commit/],
  ['a damaged file', ['damaged.tar.gz'], 15, /does not match/],
  ['a delta', ['delta.tar.gz'], 22, /it is a delta/],
] as const) {
  test(`nothing is stated of ${title}`, async () => {
    await using box = await boxWithPackage();
    const whole = await readFile(box.at('web.tar.gz'));
    const at = whole.indexOf('web() { :; }');
    assert.ok(at > 0, 'its text is not deflated');
    await writeFile(
      box.at('damaged.tar.gz'),
      Buffer.concat([whole.subarray(0, at), Buffer.from('X'), whole.subarray(at + 1)]),
    );
    const nothing = makeInventory({ payloads: [], packages: [], tool: '1' });
    const delta = await deltaOf(await bundleOfPackages([lockedPackage()]), nothing);
    await writeFile(box.at('delta.tar.gz'), delta.bytes);
    const before = await readdir(box.path);
    const { exitCode: status, stderr } = await runCommand(['provenance', ...words], box.path);
    assert.is(status, exitCode, stderr);
    assert.match(stderr, message);
    assert.not.match(stderr, 'hush');
    assert.equal(await readdir(box.path), before);
  });
}

test.run();
