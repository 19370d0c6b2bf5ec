/**
 * What tuf-conformance asks of clients of The Update Framework, asked of a signed store: a mirror that puts old states back, mixes
 * them, withholds or exchanges files. The client is `curlew bundle`; the statement next to `VERSION` is the timestamp, a catalog the
 * snapshot, a package the target.
 */
import { execa } from 'execa';
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { secondsOf } from '../../../src/formats/signing/claim.ts';
import { formatBundle } from '../../../src/formats/signing/sigstore.ts';
import { publicPart, readPrivateKey } from '../../../src/formats/signing/keys.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { specOf } from '../../support/node-bundles.ts';
import { madePackage, publishAs } from '../../support/releases.ts';
import { runCommand } from '../../support/run-command.ts';
import { DAY, memory } from '../../support/signing.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';
import { assertSays } from '../support/proof.ts';

const test = suite('components/proof/tuf', { timeoutMs: 240_000 });
const CURRENT = 'VERSION.sigstore.json';
const PACKAGE = 'aaa-1.0.0.tar.gz';
const INVALID = 30;
const MISMATCH = 15;

interface Statement {
  subject: { name: string; digest: Record<string, string> }[];
  predicate: Record<string, unknown>;
}

/** A store with the signed release r1, a client that trusts our.pub, and somebody else's key. */
class Bench {
  readonly #signal: AbortSignal;
  readonly #store: Store;
  readonly box: Tree;

  constructor(box: Tree, signal: AbortSignal) {
    this.box = box;
    this.#signal = signal;
    this.#store = createFolderStore(box.at('store'));
  }

  at(key: string): string {
    return this.box.at('store', key);
  }

  async key(name: string): Promise<KeyObject> {
    return readPrivateKey(await readFile(this.box.at(`${name}.key`), 'utf8'), name, undefined);
  }

  /** Publishes and signs a release; `age` and `lifetime` in days. */
  async publish(release: string, { age = 1, lifetime = 90, by = 'our' } = {}): Promise<void> {
    const key = await this.key(by);
    const keys = [publicPart(key, by), publicPart(await this.key('our'), 'our')];
    const trust = { keys, now: new Date(Date.now() - age * DAY), seen: memory() };
    const files = [await madePackage(this.box, 'aaa', '1.0.0', `: ${release}`)];
    await publishAs(this.#store, release, files, this.#signal, { signer: { key, lifetime: lifetime * DAY, trust } });
  }

  /** Signs the statement of the store again, changed. */
  async resign(
    change: (statement: Statement) => void,
    { by = 'our', signatures = (own: string): readonly string[] => [own] } = {},
  ): Promise<void> {
    const key = await this.key(by);
    const { dsseEnvelope } = JSON.parse(await readFile(this.at(CURRENT), 'utf8')) as {
      dsseEnvelope: { payload: string; payloadType: string };
    };
    const { payloadType } = dsseEnvelope;
    const statement = JSON.parse(Buffer.from(dsseEnvelope.payload, 'base64').toString()) as Statement;
    change(statement);
    const payload = Buffer.from(JSON.stringify(statement));
    const head = `DSSEv1 ${payloadType.length} ${payloadType} ${payload.byteLength} `;
    const own = sign('sha256', Buffer.concat([Buffer.from(head), payload]), key).toString('base64');
    const envelope = {
      payload: payload.toString('base64'),
      payloadType,
      signatures: signatures(own).map((sig) => ({ sig })),
    };
    await writeFile(this.at(CURRENT), formatBundle({ dsseEnvelope: envelope }, key));
  }

  async refresh(
    keys: readonly string[],
    words: readonly string[],
  ): Promise<{ readonly code: number; readonly stderr: string }> {
    await rm(this.box.at('b.tar.gz'), { force: true });
    const trusted = keys.flatMap((key) => ['--key', key]);
    const all = ['bundle', 'spec.yaml', '--from', 'store', ...trusted, '-o', 'b.tar.gz', ...words];
    const { exitCode, stderr } = await runCommand(all, this.box.path);
    return { code: exitCode ?? -1, stderr: stderr.replaceAll('\n', ' ') };
  }

  /** The client takes the package of this release. */
  async accepts(release: string, { keys = ['our.pub'], words = [] as readonly string[] } = {}): Promise<void> {
    const { code, stderr } = await this.refresh(keys, words);
    assert.is(code, 0, stderr);
    const { stdout } = await execa('tar', ['-xzOf', this.box.at('b.tar.gz'), 'addons/aaa/1.0.0/install.sh']);
    assert.is(stdout, `: ${release}`);
  }

  /** The client ends with this status and has written nothing. */
  async refuses(
    message: RegExp,
    { status = INVALID, keys = ['our.pub'], words = [] as readonly string[] } = {},
  ): Promise<void> {
    const { code, stderr } = await this.refresh(keys, words);
    assert.equal([code, existsSync(this.box.at('b.tar.gz'))], [status, false], stderr);
    assert.match(stderr, message);
  }
}

const NO_ROOT = 'keys are given to a client as files, which no signature replaces and no date ends';
const NO_THRESHOLD = 'one signature by one of the trusted keys is enough';
const NO_ROLES = 'a store has no delegated roles';
const NO_COPY = 'a client keeps the version of what it saw, no copy of statements';
const CURRENT_ALONE = 'of statements, only that about the current release expires';

/** The tests of tuf-conformance, by name: what is done instead in a signed store, or why there is nothing to do. */
const CASES: Readonly<Record<string, string | ((bench: Bench) => Promise<void>)>> = {
  test_basic_refresh_requests: 'which files are read in which order is part of TUF',
  test_basic_refresh_trusted_data: NO_COPY,
  test_implicit_refresh: 'every command reads the statement about the current release',
  test_invalid_initial_root: async (bench) => {
    await writeFile(bench.box.at('bad.pub'), '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n');
    await bench.refuses(/cannot read the key/, { keys: ['bad.pub'] });
  },
  test_unsigned_initial_root: NO_ROOT,
  test_unsigned_metadata: async (bench) => {
    await bench.publish('r2');
    await bench.resign(() => undefined, { by: 'their' });
    await bench.refuses(/was not made with/);
    await copyFile(bench.at(CURRENT), bench.at('r2/index.json.sigstore.json'));
    await bench.refuses(/was not made with/, { words: ['--release', 'r2'] });
  },
  test_url_and_metadata_version_mismatch: async (bench) => {
    await bench.publish('r2');
    await copyFile(bench.at('r1/index.json.sigstore.json'), bench.at('r2/index.json.sigstore.json'));
    await bench.refuses(/is the signature of r1/, { words: ['--release', 'r2'] });
  },
  test_timestamp_content_changes: `${NO_COPY}; two statements of one version can only be by the signer`,
  test_basic_metadata_hash_support: 'every digest is always compared: see the tests of mismatches',
  test_targets_hash_mismatch: async (bench) => {
    const bytes = await readFile(bench.at(`r1/${PACKAGE}`));
    bytes[bytes.byteLength >> 1] = (bytes[bytes.byteLength >> 1] ?? 0) ^ 1;
    await writeFile(bench.at(`r1/${PACKAGE}`), bytes);
    await bench.refuses(/aaa/, { status: MISMATCH });
  },
  test_snapshot_hash_mismatch: async (bench) => {
    await writeFile(bench.at('r1/index.json'), `${await readFile(bench.at('r1/index.json'), 'utf8')}\n`);
    await bench.refuses(/index\.json/);
  },
  test_metadata_bytes_match: NO_COPY,
  test_custom_fields: async (bench) => {
    await bench.resign((statement) => {
      Object.assign(statement, { more: { nested: [1] } });
      statement.predicate['more'] = 'text';
    });
    await bench.accepts('r1');
  },
  test_deprecated_keyid_hash_algorithms: NO_ROOT,
  test_snapshot_404: async (bench) => {
    await bench.accepts('r1');
    await bench.publish('r2');
    await rm(bench.at('r2/index.json'));
    await bench.refuses(/r2\/index\.json/, { status: 14 });
  },
  test_targets_404: async (bench) => {
    await bench.accepts('r1');
    await bench.publish('r2');
    await rm(bench.at(`r2/${PACKAGE}`));
    await bench.refuses(/r2\/aaa-1\.0\.0\.tar\.gz/, { status: 14 });
  },
  test_timestamp_404: async (bench) => {
    await bench.accepts('r1');
    await rm(bench.at(CURRENT));
    await bench.refuses(/VERSION\.sigstore\.json does not exist/);
  },
  test_incorrect_metadata_type: async (bench) => {
    await copyFile(bench.at('r1/index.json.sigstore.json'), bench.at(CURRENT));
    await bench.refuses(/is not a statement about it/);
  },
  test_faketime: 'it tests the suite',
  test_root_expired: NO_ROOT,
  test_timestamp_expired: async (bench) => {
    await bench.accepts('r1');
    await bench.publish('r2', { age: 3, lifetime: 1 });
    await bench.refuses(/r2 was signed as the current release until/);
  },
  test_snapshot_expired: CURRENT_ALONE,
  test_targets_expired: CURRENT_ALONE,
  test_expired_local_root: NO_ROOT,
  test_expired_local_timestamp: async (bench) => {
    await bench.accepts('r1');
    await bench.resign(({ predicate }) => (predicate['expires'] = secondsOf(new Date(Date.now() - DAY))));
    await bench.refuses(/until/);
    await bench.publish('r2', { age: 0 });
    await bench.accepts('r2');
  },
  test_client_downloads_expected_file: async (bench) => bench.accepts('r1'),
  test_client_downloads_expected_file_in_sub_dir: async (bench) => bench.accepts('r1', { words: ['--release', 'r1'] }),
  test_repository_substitutes_target_file: async (bench) => {
    await bench.accepts('r1');
    const other = await madePackage(bench.box, 'aaa', '1.0.0', ': malicious');
    await copyFile(other.path, bench.at(`r1/${PACKAGE}`));
    await bench.refuses(/aaa/, { status: MISMATCH });
  },
  test_multiple_changes_to_target: async (bench) => {
    for (const [at, release] of ['r2', 'r3', 'r4'].entries()) {
      await bench.publish(release, { age: 1 - at / 10 });
      await bench.accepts(release);
      const right = await readFile(bench.at(`${release}/${PACKAGE}`));
      await copyFile(bench.at(`r1/${PACKAGE}`), bench.at(`${release}/${PACKAGE}`));
      await bench.refuses(/aaa/, { status: MISMATCH });
      await writeFile(bench.at(`${release}/${PACKAGE}`), right);
      await bench.accepts(release);
    }
  },
  test_download_with_hash_algorithms: 'digests are sha256',
  test_download_with_unknown_hash_algorithm: async (bench) => {
    await bench.resign(({ subject }) => {
      for (const one of subject) one.digest = { sha3: one.digest['sha256'] ?? '' };
    });
    await bench.refuses(/sha256: missing/);
  },
  test_artifact_cache: 'TUF leaves it to clients',
  test_snapshot_does_not_meet_threshold: NO_THRESHOLD,
  test_snapshot_has_too_few_keys: async (bench) => {
    await bench.resign(() => undefined, { signatures: () => [] });
    await bench.refuses(/signatures: empty/);
  },
  test_duplicate_keys: NO_THRESHOLD,
  test_duplicate_sig_keyids: NO_THRESHOLD,
  test_keytype_and_scheme: async (bench) => {
    const others = [
      generateKeyPairSync('rsa', { modulusLength: 2048 }),
      generateKeyPairSync('ed25519'),
      generateKeyPairSync('ec', { namedCurve: 'secp384r1' }),
    ];
    for (const { publicKey } of others) {
      await writeFile(bench.box.at('other.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
      await bench.refuses(/is not an ECDSA P-256 key/, { keys: ['other.pub'] });
    }
    await bench.accepts('r1');
  },
  test_invalid_sig_in_valid_metadata: async (bench) => {
    const plausible = sign('sha256', Buffer.from('other'), await bench.key('their')).toString('base64');
    await bench.resign(() => undefined, { signatures: (own) => [plausible, own] });
    await bench.accepts('r1');
    await bench.resign(() => undefined, { signatures: (own) => [own, ''] });
    await bench.refuses(/not base64/);
  },
  test_unusual_role_name: async (bench) => {
    for (const name of ['?', '#', '/r1', '../r1', 'r1/../r1', '..', 'r1%2f', 'r 1', '']) {
      await bench.resign(({ predicate }) => (predicate['release'] = name));
      await bench.refuses(/is not a statement about it/);
    }
  },
  test_new_timestamp_version_rollback: async (bench) => {
    const old = await readFile(bench.at(CURRENT));
    await bench.publish('r2');
    await bench.accepts('r2');
    await writeFile(bench.at(CURRENT), old);
    await bench.refuses(/was seen before/);
  },
  test_snapshot_rollback: async (bench) => {
    await bench.publish('r2');
    await copyFile(bench.at('r1/index.json'), bench.at('r2/index.json'));
    await bench.refuses(/index\.json/);
  },
  test_targets_role_removal: NO_ROLES,
  test_targets_fast_forward_recovery: NO_ROLES,
  test_new_snapshot_fast_forward_recovery: 'a catalog has no version of its own',
  test_new_timestamp_fast_forward_recovery:
    'the versions of all trusted keys count together, so that a key cannot put back what another signed',
  test_targets_rollback: async (bench) => {
    await bench.publish('r2');
    await copyFile(bench.at(`r1/${PACKAGE}`), bench.at(`r2/${PACKAGE}`));
    await bench.refuses(/aaa/, { status: MISMATCH });
  },
  test_static_repository: 'it reads files of TUF',
  test_graph_traversal: NO_ROLES,
  test_targetfile_search: NO_ROLES,
  test_cached_role_is_verified_against_current_delegator: NO_ROLES,
  test_delegation_not_in_snapshot: NO_ROLES,
  test_root_rotation: NO_ROOT,
  test_non_root_rotations: async (bench) => {
    await bench.accepts('r1');
    await bench.publish('r2', { by: 'their' });
    await bench.refuses(/was not made with/);
    await bench.accepts('r2', { keys: ['our.pub', 'their.pub'] });
    await bench.accepts('r2', { keys: ['their.pub'] });
    await bench.resign(() => undefined, { by: 'our' });
    await bench.refuses(/was not made with/, { keys: ['their.pub'] });
  },
};

test('a signed store holds against what tuf-conformance does to clients', async ({ signal }) => {
  const failures: string[] = [];
  const all = Object.entries(CASES);
  const scenarios = all.flatMap(([name, run]) => (typeof run === 'string' ? [] : [{ name, run }]));
  await using keys = await tree();
  for (const name of ['our', 'their']) assert.is((await runCommand(['keygen', name], keys.path)).exitCode, 0);
  for (const { name, run } of scenarios) {
    await using box = await tree({ 'spec.yaml': specOf([{ name: 'aaa', version: '1.0.0' }]) });
    for (const file of ['our.key', 'our.pub', 'their.key', 'their.pub']) await copyFile(keys.at(file), box.at(file));
    await mkdir(box.at('store'));
    const bench = new Bench(box, signal);
    await bench.publish('r1', { age: 2 });
    await run(bench).catch((error: unknown) => failures.push(`${name}: ${String(error)}`));
  }
  const held = scenarios.length - failures.length;
  const said = `${held} of ${scenarios.length} hold, ${all.length - scenarios.length} not applicable`;
  assertSays('tuf', said, failures.join('\n'));
});

test.run();
