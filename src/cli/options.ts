/** Options that several commands have. */
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import type { OptionSpecs } from './command.ts';
import { age, arch, choice, folders, osImage, wholeNumber } from './values.ts';

export const NETWORK_OPTIONS = {
  'registry-mirror': {
    type: 'string',
    multiple: true,
    value: 'HOST=MIRROR',
    help: 'ask MIRROR (host:port[/project]) before registry HOST; may be repeated',
    group: 'Network options',
  },
  'allow-http': {
    type: 'string',
    multiple: true,
    value: 'HOST',
    help: 'ask this host over plain http; may be repeated',
    group: 'Network options',
  },
  'trust-realm': {
    type: 'string',
    multiple: true,
    value: 'HOST',
    help: "send this host a registry's credentials when it asks; may be repeated",
    group: 'Network options',
  },
  'ca-file': {
    type: 'string',
    value: 'FILE',
    help: 'certificate authorities to trust as well, in PEM',
    group: 'Network options',
  },
  config: {
    type: 'string',
    value: 'FILE',
    help: 'configuration file (default: ~/.config/curlew/config.json)',
    group: 'Network options',
  },
} satisfies OptionSpecs;

/** Of commands that fetch, but talk to no registry. */
export const WEB_OPTIONS = {
  'allow-http': NETWORK_OPTIONS['allow-http'],
  'ca-file': NETWORK_OPTIONS['ca-file'],
  config: NETWORK_OPTIONS.config,
} satisfies OptionSpecs;

/** Of every command that takes a store. */
export const STORE_OPTIONS = {
  's3-endpoint': {
    type: 'string',
    value: 'URL',
    help: 'server that is not AWS (default: $AWS_ENDPOINT_URL_S3)',
    group: 'Options of stores in S3',
  },
  's3-region': {
    type: 'string',
    value: 'REGION',
    help: 'region of the bucket (default: $AWS_REGION)',
    group: 'Options of stores in S3',
  },
  's3-profile': {
    type: 'string',
    value: 'NAME',
    help: 'profile to take credentials from (default: $AWS_PROFILE)',
    group: 'Options of stores in S3',
  },
  's3-path-style': {
    type: 'boolean',
    help: 'put the bucket into the path, not the host name (default: where there is an endpoint)',
    group: 'Options of stores in S3',
  },
  'ca-file': NETWORK_OPTIONS['ca-file'],
  config: NETWORK_OPTIONS.config,
} satisfies OptionSpecs;

const BACKEND_OPTIONS = {
  'packages-by': {
    type: 'string',
    read: choice('container', 'host'),
    value: 'BACKEND',
    help: 'fetch host packages by container or host (default: container, when a Docker engine answers)',
  },
  builder: {
    type: 'string',
    multiple: true,
    read: osImage,
    value: 'OS=IMAGE',
    help: "builder image for an operating system's packages",
  },
  'container-limit': {
    type: 'string',
    read: wholeNumber,
    value: 'MINUTES',
    help: 'longest time for one container (default: 60)',
  },
  'container-network': { type: 'string', value: 'NAME', help: "the engine's network for containers, such as host" },
} satisfies OptionSpecs;

export const BUILD_OPTIONS = {
  out: { type: 'string', value: 'DIR', help: 'folder for packages (default: out, beside addons)' },
  arch: { type: 'string', read: arch, value: 'ARCH', help: 'amd64 or arm64 (default: amd64)' },
  'image-format': {
    type: 'string',
    read: choice('oci', 'docker-archive'),
    value: 'FORM',
    help: 'oci (default) or docker-archive, as kURL has it',
  },
  'from-engine': { type: 'boolean', help: 'take images that no registry gives from the Docker engine' },
  jobs: { type: 'string', read: wholeNumber, short: 'j', value: 'N', help: 'add-ons at once (default: 4)' },
  cache: { type: 'string', value: 'DIR', help: 'folder for unfinished downloads' },
  locked: { type: 'boolean', help: 'refuse what differs from the committed Manifest.lock' },
  'update-lock': { type: 'boolean', help: 'write Manifest.lock beside the Manifest, as everything resolves now' },
  ...BACKEND_OPTIONS,
  ...NETWORK_OPTIONS,
} satisfies OptionSpecs;

/** Options of every command that reads a release. */
export const KEY_OPTIONS = {
  key: {
    type: 'string',
    multiple: true,
    value: 'FILE',
    help: 'refuse what no such public key has signed; may be repeated',
    group: 'Options of signatures',
  },
  'require-signed': {
    type: 'boolean',
    help: 'stop where neither --key nor the configuration names a key',
    group: 'Options of signatures',
  },
} satisfies OptionSpecs;

/** Options of every command that takes a bundle from somebody else. */
export const SIGNED_OPTIONS = {
  ...KEY_OPTIONS,
  signature: {
    type: 'string',
    value: 'FILE',
    help: 'the signature (default: beside it, .sigstore.json)',
    group: 'Options of signatures',
  },
  'signed-as': {
    type: 'string',
    value: 'NAME',
    help: 'refuse what is signed under another name',
    group: 'Options of signatures',
  },
} satisfies OptionSpecs;

/** Option of commands that ask what was seen before, and install nothing. */
export const DOWNGRADE_OPTION = {
  'allow-downgrade': {
    type: 'boolean',
    help: 'take what is signed, and older than what was seen',
    group: 'Options of signatures',
  },
} satisfies OptionSpecs;

/** Of every command that makes a release current. */
export const MAKE_CURRENT = {
  'make-current': { type: 'boolean', help: 'make a release current that was published before the current one' },
} satisfies OptionSpecs;

/** Options of commands that make a release. */
export const SIGNER_OPTIONS = {
  sign: {
    type: 'string',
    value: 'FILE',
    help: 'private key to sign the release with, as curlew keygen makes it',
    group: 'Options of signatures',
  },
  expires: {
    type: 'string',
    read: age,
    value: 'TIME',
    help: 'with --sign: how long it may be current (default: 90d)',
    group: 'Options of signatures',
  },
} satisfies OptionSpecs;

/** Of every command that looks at an install folder without installing. */
export const FOLDER_OPTIONS = {
  'install-dir': { type: 'string', value: 'DIR', help: `install folder (default: ${INSTALL_DIRECTORY})` },
  root: { type: 'string', value: 'DIR', help: 'the folder that a trial was given with --root' },
} satisfies OptionSpecs;

/** Of every command that takes a path or an address of a package or bundle. */
export const ANYWHERE_OPTIONS = { ...WEB_OPTIONS, ...STORE_OPTIONS } satisfies OptionSpecs;

/** Of every command that writes parts. */
export const PARTS_OPTIONS = {
  to: {
    type: 'string',
    multiple: true,
    read: folders,
    value: 'FOLDER[,FOLDER…]',
    help: 'write parts to these media, each as full as it goes',
  },
} satisfies OptionSpecs;

/** Of every command that judges settings for others to mend. */
export const SETTINGS_OPTION = {
  'allow-invalid-settings': {
    type: 'boolean',
    help: 'take a spec whose settings do not fit its packages: the spec of a site is to mend them',
  },
} satisfies OptionSpecs;
