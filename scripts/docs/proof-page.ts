/** The page of suites that other projects wrote, and the table that it is made of; test/components/proof and test/nightly/proof run them. */
import { execFileSync } from 'node:child_process';

export interface ProofSuite {
  readonly title: string;
  /** Row of scripts/support/tools.bash, which pins its version; undefined for what Debian packages alone. */
  readonly tool?: string;
  /** Where the version is not that of a tool. */
  readonly version?: string;
  readonly against: string;
  /** What a run of it says, word for word: its test compares. */
  readonly says: string;
  /** What of it is turned off or accepted, and why. */
  readonly without: string;
  /** Test file that runs it. */
  readonly test: string;
}

/** By the name that `scripts/proof` takes. */
export const SUITES = {
  oci: {
    title: 'OCI distribution conformance',
    tool: 'oci-conformance',
    against: '`curlew serve`, `/v2/`',
    says: '26 passed, 0 failed, 17 disabled',
    without:
      'pushing and deleting: the registry is read-only. `Docker-Content-Digest` of manifests: the suite keeps no answer to look at in ' +
      'read-only mode, so its test looks',
    test: 'test/components/proof/oci.test.ts',
  },
  cyclonedx: {
    title: 'CycloneDX 1.6, strict schema',
    tool: 'cyclonedx-python-lib',
    against: '`curlew sbom` of packages and of a bundle',
    says: '3 of 3 valid',
    without: '',
    test: 'test/components/proof/cyclonedx.test.ts',
  },
  sigstore: {
    title: 'sigstore-conformance, its stored bundles',
    version: 'a73de497',
    against: '`curlew verify --signature`, and the check that agents make of manifests',
    says: '70 of 70 refused; by a key: 4 of 4 as expected',
    without:
      'what signs, and what is expected of certificates, logs and timestamps: curlew has only keys, and the key alone decides. ' +
      'The bundles are input that must be refused',
    test: 'test/components/proof/sigstore.test.ts',
  },
  tuf: {
    title: 'tuf-conformance, as a list of scenarios',
    version: 'eec841c1',
    against: '`curlew bundle --key` from a signed store',
    says: '25 of 25 hold, 28 not applicable',
    without:
      'what is of TUF alone: its root and its chain, thresholds, delegated roles, copies of metadata. The test has the reason of each. An ' +
      'empty signature next to a valid one is refused as damaged',
    test: 'test/components/proof/tuf.test.ts',
  },
  lintian: {
    title: 'lintian',
    against: 'the deb',
    says: 'nothing',
    without:
      'what `scripts/linux-packages/lintian-overrides` has, each with its reason; the large binaries in it only at night',
    test: 'test/components/linux-packages.test.ts',
  },
  piuparts: {
    title: 'piuparts',
    against: 'the deb: installed, upgraded, reinstalled, purged',
    says: 'PASS: Installation and purging test. PASS: Installation, upgrade and purging tests. PASS: All tests.',
    without: 'the documentation that the bare system of the tests does not have; the large binaries',
    test: 'test/components/linux-packages.test.ts',
  },
  rpmlint: {
    title: 'rpmlint',
    against: 'the rpm',
    says: '0 errors, 0 warnings',
    without: 'what `scripts/linux-packages/rpmlint.toml` has, each with its reason',
    test: 'test/components/linux-packages.test.ts',
  },
  reprotest: {
    title: 'reprotest',
    against: '`curlew build`, `publish` and `bundle`, twice',
    says: 'Reproduction successful, 2 files, 12 variations',
    without:
      'the order of files in folders, which needs a file system in user space, and the user: other tests vary the order; a package has ' +
      'no users',
    test: 'test/components/proof/reprotest.test.ts',
  },
  slowhttptest: {
    title: 'slowhttptest',
    against:
      '`curlew serve`: slow heads, slow bodies, ranges, slow reading, 300 connections each; slow reading by as many as `--max-connections`',
    says: 'answers during 5 of 5 attacks',
    without:
      'the last attack but for its last 25 seconds: connections are closed for others after half a minute, and on a busy machine later',
    test: 'test/nightly/proof/slow.test.ts',
  },
  testssl: {
    title: 'testssl.sh',
    against: '`curlew serve --tls-cert`',
    says: '34 OK, 0 weak',
    without: 'the certificate, which is of the test',
    test: 'test/nightly/proof/tls.test.ts',
  },
} as const satisfies Readonly<Record<string, ProofSuite>>;

/** Suites without a test, and what is known about them. */
const NOT_RUN: Readonly<Record<string, string>> = {
  "kubeadm's end-to-end tests, and those for conformance that need no images of others": 'not built yet',
  'charts of helm and manifests of kubectl': 'some are in the tests of deliveries, none as a suite',
};

export type ProofName = keyof typeof SUITES;

const INTRODUCTION = `# Proof by the suites of others

\`scripts/proof\` runs suites that other projects wrote, unchanged, against curlew, and ends with this table. \`scripts/proof NAME\`
runs one of them. Versions are pinned in \`scripts/support/tools.bash\`; what Debian packages has the version of the system. The
tests run the quick ones, and \`scripts/test --all\` the rest. A test fails when its suite says something else.`;

/** The pinned version of a suite. */
export function versionOf({ tool, version }: ProofSuite): string {
  if (version !== undefined) return version;
  if (tool === undefined) return "Debian's";
  const line = 'source scripts/support/tools.bash && tools_version "$1"';
  return execFileSync('bash', ['-euc', line, 'bash', tool], { encoding: 'utf8' }).trim();
}

export function proofPage(): string {
  const rows = Object.entries<ProofSuite>(SUITES).map(([name, suite]) => {
    const { title, against, says, without } = suite;
    return `| \`${name}\` | ${title} | ${versionOf(suite)} | ${against} | ${says} | ${without} |`;
  });
  const head = [
    '| name | suite | version | against | it says | left out, and why |',
    '| --- | --- | --- | --- | --- | --- |',
  ];
  const left = Object.entries(NOT_RUN).map(([title, why]) => `| ${title} | ${why} |`);
  const table = ['| suite | why |', '| --- | --- |', ...left];
  return [INTRODUCTION, '', ...head, ...rows, '', '## Not run', '', ...table, ''].join('\n');
}
