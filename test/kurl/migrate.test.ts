import { chmod, cp, mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkRepository, type Migration } from '../../src/kurl/migrate.ts';
import { KURL_FUNCTIONS } from '../../src/kurl/compatibility/functions.ts';
import { VARIABLES } from '../../src/kurl/compatibility/variables.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { KURL_SCRIPTS, kurlAddon, versionsScript, writeKurlRepository } from '../support/kurl-repository.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files, type Tree } from '../support/tree.ts';

const test = suite('migrate/migrate');
const LIBRARY = join(import.meta.dirname, '../../scripts/lib');

async function look(box: Tree, library = LIBRARY): Promise<Migration> {
  const searchPath = process.env['PATH'] ?? '/usr/bin:/bin';
  return checkRepository(box.path, { library, searchPath, signal: never });
}

/** What is said, a line each. */
function said({ addons, findings }: Migration): readonly string[] {
  return [...findings, ...addons.flatMap((addon) => addon.findings)]
    .filter(({ kind }) => kind !== 'order')
    .map(
      ({ grade, kind, subject, message, place }) =>
        `${grade} ${kind} ${subject} ${place.file}:${place.line} ${message}`,
    );
}

async function lookAt(files: Files): Promise<Migration> {
  await using box = await tree(files);
  const migration = await look(box);
  return migration;
}

/** One add-on with this in its install.sh. */
async function withScript(script: string, more: Files = {}): Promise<readonly string[]> {
  return said(await lookAt({ 'addons/demo/1.0/Manifest': '', 'addons/demo/1.0/install.sh': script, ...more }));
}

test('add-ons in the manner of kURL work as they are, and what they use of the library is listed', async () => {
  await using box = await tree();
  await writeKurlRepository(box.path, { count: 120 });
  const migration = await look(box);
  assert.equal(said(migration), []);
  assert.ok(migration.addons.every(({ verdict }) => verdict === 'works'));
  assert.equal(migration.addons.at(0)?.uses, {
    functions: [
      'bail',
      'commandExists',
      'host_packages_shipped',
      'insert_resources',
      'log',
      'logWarn',
      'render_yaml_file_2',
      'spinner_until',
    ],
    variables: [
      'ANTREA_VERSION',
      'DIR',
      'DIST_VERSION',
      'DOCKER_VERSION',
      'K8S_DISTRO',
      'KUBERNETES_VERSION',
      'LSB_DIST',
      'NO_PROXY_ADDRESSES',
      'PROXY_ADDRESS',
    ],
  });
  const rook = migration.orders.find(({ name }) => name === 'contour');
  assert.is(rook?.versions[0], '1.3.7');
});

test('the tables of compatibility say what differs and what is absent', async () => {
  const functions = KURL_FUNCTIONS.flatMap(([, rows]) => rows);
  const variables = VARIABLES.flatMap(([, rows]) => rows);
  const calls = functions.map(({ name }) => `  ${name} a b`);
  const reads = variables.map(({ name }) => `  echo "$${name}"`);
  const lines = await withScript(`demo() {\n${[...calls, ...reads].join('\n')}\n}\n`);
  const told = functions.flatMap(({ name, status, note }, index) => {
    return status === 'same' ? [] : [`differs function ${name} addons/demo/1.0/install.sh:${index + 2} ${note}`];
  });
  assert.equal(lines.slice(0, told.length), told);
  assert.equal(
    lines.slice(told.length).map((line) => line.split(' ').slice(0, 3).join(' ')),
    variables.flatMap(({ name, status }) => (status === 'same' ? [] : [`differs variable ${name}`])),
  );
});

test('programs below bin/ that nothing stands in for are told, with the package that brings them', async () => {
  const lines = await withScript(`demo() {
  "$DIR/bin/yamlutil" -j; $DIR/bin/subnet; "$BIN_KURL" format-address x
  spinner_until 10 "$DIR"/bin/docker-config -m
  "$BIN_KURL" rook flexvolume-to-csi --node x
  $DIR/bin/kurl rook wait-for-health 300; "$BIN_KURL" netutil iface-from-ip "$address"
  ./bin/own-program; "$BIN_KURL" sing a song
}`);
  const programs = lines.flatMap((line) => line.match(/(?<=program )bin.* (?=addons)/) ?? []);
  assert.equal(programs, ['bin/docker-config ', 'bin/kurl rook flexvolume-to-csi ', 'bin/kurl sing a ']);
  assert.match(lines[1] ?? '', /flexvolume-to-csi addons\/demo\/1\.0\/install\.sh:4 .*storage is not migrated/);
});

test("functions and variables that only kURL's own scripts have are missing, and it is said where they are", async () => {
  const lines = await withScript('demo() {\n  tell_the_world\n  log "$KURL_GREETING"\n}\n', KURL_SCRIPTS);
  assert.equal(lines, [
    'missing function tell_the_world addons/demo/1.0/install.sh:2 scripts/common/common.sh of the repository defines it; nothing here does',
    'missing variable KURL_GREETING addons/demo/1.0/install.sh:3 scripts/common/common.sh of the repository sets it; nothing here does',
  ]);
});

test('what nothing defines is missing; a program is a note', async () => {
  assert.equal(await withScript('demo() { demo_rendr; doIt; frobnicate; }'), [
    'missing function demo_rendr addons/demo/1.0/install.sh:1 nothing defines it',
    'missing function doIt addons/demo/1.0/install.sh:1 nothing defines it',
    'note program frobnicate addons/demo/1.0/install.sh:1 a program that must be on the machine',
  ]);
});

test('no false alarm: own files, other add-ons, asked-for functions, defaults, settings, assets', async () => {
  const lines = await withScript(
    `demo() {
  demo_helper
  if commandExists rook_create_bucket; then rook_create_bucket x; fi
  other_thing
  antctl_x version
  echo "\${NOBODY:-x}" "$DEMO_ANY_SETTING" "$OTHER_SET" "$lower" "$HOME" "$PROXY_ADDRESS" "$CEPH_POOL_REPLICAS"
  cat <<'EOF'
$NOT_READ $(not_called)
EOF
}`,
    {
      'addons/demo/1.0/Manifest': 'asset antctl_x https://h.example/a\n',
      'addons/demo/1.0/lib.sh': 'demo_helper() { :; }\n',
      'addons/demo/1.0/host/script.sh': '#!/bin/bash\nunknown_to_us "$NOBODY_SETS"\n',
      'addons/other/1/Manifest': '',
      'addons/other/1/install.sh': 'other() { :; }\nother_thing() { OTHER_SET=1; }\n',
    },
  );
  assert.equal(lines, []);
});

test('files that a hook reads must be there, but for those that it makes or looks for first', async () => {
  const script = `demo() {
  local src="$DIR/addons/demo/$DEMO_VERSION"
  cp "$src/gone.yaml" "$src/yaml/there.yaml" "$DIR/kustomize/demo/"
  tar xf "$src/assets/a.tgz"; cat "$src/assets/a.tgz" "$src/images/x.tar.gz" "$src/rhel-8/archives/y"
  [ -f "$src/maybe.yaml" ] && kubectl apply -f "$src/maybe.yaml"
  echo x > "$src/made.yaml"; kubectl apply -f "$src/made.yaml"
  kubectl apply -k "$src/yaml"
  render_yaml_file_2 "$src/tmpl.yaml"
  source "$src/part.sh"
  cat "$DIR/addons/demo/2.0/other.yaml"
}`;
  const lines = await withScript(script, {
    'addons/demo/1.0/Manifest': 'asset a.tgz https://h.example/a\nyum lvm2\n',
    'addons/demo/1.0/yaml/there.yaml': '',
    'addons/demo/1.0/tmpl.yaml': 'a: $NOBODY_SETS\n',
    'addons/demo/1.0/part.sh': 'part_unknown\n',
  });
  assert.equal(
    lines,
    [
      'note variable NOBODY_SETS addons/demo/1.0/tmpl.yaml:1 nothing sets it: it is empty unless the caller sets it',
      'missing function part_unknown addons/demo/1.0/part.sh:1 nothing defines it',
      'missing file gone.yaml addons/demo/1.0/install.sh:3 a hook reads it, but it is not in addons/demo/1.0',
    ].toSorted((a, b) => lines.indexOf(a) - lines.indexOf(b)),
  );
});

test('directives, scripts and host preflights that do not parse are missing', async () => {
  const lines = await withScript('demo() {\n  if x\n}\n', {
    'addons/demo/1.0/Manifest': 'imag a b\nimage a b:1 # c\n',
    'addons/demo/1.0/host-preflight.yaml':
      'apiVersion: troubleshoot.sh/v1beta2\nkind: HostPreflight\nspec:\n  collectors:\n{{kurl- if .IsUpgrade }}\n    - cpu: [\n{{kurl- end }}\n    - nonsense: {}\n',
  });
  const starts = lines.map((line) => line.split(' ').slice(0, 4).join(' '));
  assert.equal(starts.slice(0, 2), [
    'missing directive manifest/unknown-directive addons/demo/1.0/Manifest:1',
    'missing directive manifest/inline-comment addons/demo/1.0/Manifest:2',
  ]);
  assert.ok(starts.some((line) => line.startsWith('missing script install.sh addons/demo/1.0/install.sh:')));
  assert.ok(
    starts.some((line) => line.startsWith('missing preflight yaml/syntax addons/demo/1.0/host-preflight.yaml:')),
  );
  assert.ok(starts.includes('differs preflight preflight/unknown addons/demo/1.0/host-preflight.yaml:8'));
});

test('what kURL does by scripts of its own is told: Kubernetes, and its conformance packages', async () => {
  const lines = said(
    await lookAt({
      'packages/kubernetes/1.26.3/Manifest': '',
      'packages/kubernetes/1.26.3/conformance/Manifest': 'image a b:1\n',
      'packages/kubernetes/1.27.0/Manifest': '',
    }),
  );
  assert.equal(
    lines.map((line) => line.split(' ').slice(0, 3).join(' ')),
    ['missing package kubernetes', 'differs package kubernetes-conformance'],
  );
});

test('links out of the repository are not followed, one line each', async () => {
  await using outside = await tree(kurlAddon('away', '1.0'));
  await using box = await tree(kurlAddon('demo', '1.0'));
  await symlink(outside.at('addons/away'), box.at('addons/away'));
  await symlink(outside.at('addons/away/1.0'), box.at('addons/demo/2.0'));
  await mkdir(box.at('web/src'), { recursive: true });
  await mkdir(outside.at('installers'));
  await writeFile(outside.at('installers/versions.js'), versionsScript({ demo: ['9.9'] }));
  await symlink(outside.at('installers'), box.at('web/src/installers'));
  await writeFile(outside.at('secret.yaml'), 'secret\n');
  await symlink(outside.at('secret.yaml'), box.at('addons/demo/1.0/secret.yaml'));
  const migration = await look(box);
  assert.equal(
    said(migration).map((line) => line.split(' ').slice(0, 4).join(' ')),
    [
      'missing folder addons/away/1.0 addons/away/1.0:1',
      'missing folder addon/not-regular addons/demo/1.0/secret.yaml:1',
      'missing folder addons/demo/2.0 addons/demo/2.0:1',
    ],
  );
  assert.equal(migration.orders, []);
});

test('scripts that are no text, or too large, are one line each', async () => {
  await using box = await tree({
    ...kurlAddon('demo', '1.0'),
    ...kurlAddon('demo', '2.0'),
    ...kurlAddon('demo', '3.0'),
    ...kurlAddon('demo', '4.0'),
    ...kurlAddon('demo', '5.0'),
  });
  await writeFile(box.at('addons/demo/1.0/install.sh'), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 0xff]));
  await truncate(box.at('addons/demo/2.0/install.sh'), 5 << 20);
  await writeFile(box.at('addons/demo/3.0/install.sh'), 'demo() {\r\n:\r\n}\r\n');
  await writeFile(box.at('addons/demo/4.0/install.sh'), `demo() { :; }\n${' '.repeat(1 << 20)}`);
  await writeFile(box.at('addons/demo/5.0/install.sh'), '$('.repeat(200_000));
  const lines = said(await look(box));
  assert.equal(
    lines.map((line) => line.split(' ').slice(0, 3).join(' ')),
    [
      'missing script install.sh',
      'missing script install/too-large',
      'missing script install.sh',
      'missing script install.sh',
      'missing script install.sh',
    ],
  );
});

test('folders that cannot be read are one line each, and the rest is looked at', async () => {
  await using box = await tree({
    ...kurlAddon('demo', '1.0'),
    ...kurlAddon('demo', '2.0'),
    ...kurlAddon('shut', '1.0'),
  });
  await cp(LIBRARY, box.at('library'), { recursive: true });
  await look(box);
  const shut = [box.at('addons/demo/2.0'), box.at('addons/shut')];
  await chmod(box.path, 0o755);
  for (const folder of shut) await chmod(folder, 0o000);
  const isRoot = process.getuid?.() === 0;
  const here = process.cwd();
  let lines: readonly string[];
  try {
    // Root may read everything. Nobody else starts programs in a folder below /root.
    process.chdir(box.path);
    if (isRoot) process.seteuid?.(65_534);
    lines = said(await look(box, box.at('library')));
  } finally {
    if (isRoot) process.seteuid?.(0);
    process.chdir(here);
    for (const folder of shut) await chmod(folder, 0o755);
  }
  assert.equal(lines.toSorted(), [
    'missing folder addons/demo/2.0 addons/demo/2.0:1 cannot be read: EACCES',
    'missing folder addons/shut addons/shut:1 cannot be read: EACCES',
  ]);
});

test('a folder without add-ons, and a list of versions that is no list', async () => {
  await using empty = await tree({ 'README.md': '' });
  await assert.rejectsWith(look(empty), 'NOT_FOUND', /no add-ons in/);
  await using box = await tree({
    ...kurlAddon('demo', '1.0'),
    'web/src/installers/versions.js': 'module.exports = 1;\n',
  });
  const { findings } = await look(box);
  assert.match(findings[0]?.message ?? '', /cannot be read completely: InstallerVersions is missing/);
});

test.run();
