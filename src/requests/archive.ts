/** Requests about package and bundle files: downloads, signatures, and documents about them. */
import { isDigest, type Digest } from '../core/digest.ts';
import {
  age,
  flag,
  numberOf,
  one,
  outputFile,
  path,
  paths,
  places,
  reading,
  sizeField,
  text,
  place,
} from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { digest } from '../core/schema.ts';
import { FORCE } from './bundle.ts';
import { ADDRESS, CONFIG, STORE, WEB } from './connection.ts';
import { FOLDER } from './node.ts';
import { DOWNGRADE, SIGNED } from './trust.ts';

export const INSPECT = request('inspect', {
  path: path('FILE', 'a package, bundle or delta, or the head file of parts', {
    operand: true,
    required: 'specify one file',
    hint: 'curlew inspect FILE',
  }),
  files: flag('list every file with size, mode and digest'),
});
const sha256 = one<Digest>({
  schema: digest,
  read: (text, option) => {
    const parse = (hex: string): Digest | undefined => {
      const prefixed = `sha256:${hex.toLowerCase().replace(/^sha256:/, '')}`;
      return isDigest(prefixed) ? prefixed : undefined;
    };
    return reading(parse, 'not 64 hexadecimal digits')(text, option);
  },
});
const connections = one(numberOf(1, 16, 'not a number from 1 to 16'));

const PULLING = {
  addresses: places('ADDRESS', 'URL, s3://bucket/key or file, and its mirrors', {
    operand: true,
    required: 'no address given',
    hint: 'curlew pull URL -o FILE',
  }),
  output: outputFile('PATH', 'output file or folder (default: the name in the address)', { short: 'o' }),
  connections: connections('N', 'concurrent requests (default: 4)'),
  limitRate: sizeField('RATE', 'maximum bytes per second, such as 500K or 10M'),
  sha256: sha256('HEX', 'SHA-256 of the whole file; allows any kind of file'),
  ...FORCE,
  ...SIGNED,
  ...WEB,
  ...STORE,
};
export const PULL = request('pull', PULLING, {
  dryRun: flag('show what would be downloaded, and verify its signature; write nothing'),
});
export type PullRequest = RequestOf<typeof PULL.fields>;

const verified = paths('FILE', 'packages and bundles, head files of their parts, or folders of unpacked bundles', {
  operand: true,
});
/** The install folder records the versions that this node has seen. */
const VERIFYING = { ...FOLDER, ...SIGNED, ...DOWNGRADE, ...CONFIG };

export const VERIFY = request(
  'verify',
  { files: verified, ...VERIFYING },
  { installed: flag('verify the install folder instead of files') },
);
export const VERIFY_FILES = {
  name: 'verify',
  fields: { files: { ...verified, required: 'no file given' }, ...VERIFYING },
};
export const VERIFY_INSTALLED = { name: 'verify', fields: FOLDER };

/** The install folder has the payloads that are not in a delta. */
const READING = { installDir: path('DIR', 'for a delta: the folder with the rest'), ...ADDRESS };
export type ReadRequest = RequestOf<typeof READING>;

const required = 'specify one file, or several with --beside';
const hint = 'curlew sbom FILE, or curlew sbom FILE… --beside';
const SBOM_FILES = {
  files: places('PACKAGE | BUNDLE | ADDRESS', 'what to describe', { operand: true, required, hint }),
};
const SBOM_FILE = { file: place('FILE', 'path or address of a package or bundle', { required }) };
const sbomOutput = path('FILE', 'the SBOM to write (default: standard output)', { short: 'o' });
const replacing = { force: flag('replace an existing file', { with: 'output' }) };

export const SBOM = request(
  'sbom',
  { ...SBOM_FILES, output: sbomOutput, ...replacing, ...READING },
  { beside: flag('write FILE.cdx.json next to each file (for an address, to the current folder)') },
);
export const MAKE_SBOM = { name: 'make an SBOM', fields: { ...SBOM_FILE, ...READING } };
export const WRITE_SBOM = {
  name: 'write an SBOM',
  fields: { ...MAKE_SBOM.fields, output: { ...sbomOutput, required: 'add -o with a file' }, ...replacing },
};
export const SBOMS_BESIDE = { name: 'write SBOMs', fields: { ...SBOM_FILES, ...READING } };

const BUILDER = {
  builder: text('URI', 'the builder (default: the workflow or runner of the CI service)'),
  commit: text('SHA', 'git commit of the add-ons (default: as published, or from the CI job)'),
};
export type BuilderRequest = RequestOf<typeof BUILDER>;

export const PROVENANCE = request('provenance', {
  files: places('FILE | ADDRESS', 'packages and bundles', {
    operand: true,
    required: 'specify files, and only one with --output',
  }),
  sign: path('KEY', 'sign with this private key from curlew keygen'),
  output: outputFile('FILE', 'with one file: the output file (default: next to it)', { short: 'o' }),
  ...replacing,
  ...BUILDER,
  ...ADDRESS,
});
export type ProvenanceRequest = RequestOf<typeof PROVENANCE.fields>;

export const KEYGEN = request('keygen', {
  name: path('NAME', 'path of the files, with or without .key (default: curlew)', { operand: true }),
});
const usage = {
  required: 'files or a store, and a key, are required',
  hint: 'curlew sign FILE… --key FILE, or curlew sign --store STORE --key FILE',
} as const;
const signed = places('FILE | ADDRESS', 'packages, bundles, manifests, and archives of charts', { operand: true });
const store = place('STORE', 'sign a release of this store');
const version = one(numberOf(1, Number.MAX_SAFE_INTEGER, 'not a whole number from 1'));
const OF_FILES = {
  name: text('NAME', 'name of the bundle (default: that of its spec, or its file)'),
  number: version('N', 'version in the statement (default: the current time in seconds)'),
};
const OF_RELEASE = { release: text('R', 'sign this release', { offers: 'release', with: 'store' }) };
const SIGNING = {
  key: path('FILE', 'private key from curlew keygen', usage),
  expires: age('TIME', 'validity (default: forever; for a current release 90d)'),
  ...ADDRESS,
};

export const SIGN = request('sign', {
  files: signed,
  ...OF_FILES,
  store,
  ...OF_RELEASE,
  ...SIGNING,
});
export const SIGN_FILES = { name: 'sign', fields: { files: { ...signed, ...usage }, ...OF_FILES, ...SIGNING } };
export type SignFilesRequest = RequestOf<typeof SIGN_FILES.fields>;
export const SIGN_RELEASE = { name: 'sign', fields: { store: { ...store, ...usage }, ...OF_RELEASE, ...SIGNING } };
