"""The public names, pinned: a change here is a change of the API and belongs into the changelog."""

import subprocess
import sys
from importlib import import_module

import pytest

import zhat

PUBLIC = {
    "zhat": "__version__ dgp datasets scenes encoders objectives train load IdentifiableEncoder Fresh Progress metrics "
    "Equivalence equivalence theory score consistency audit decode runs report testing cite",
    "zhat.dgp": "Space Real Sphere Box Product Distribution Uniform Normal Laplace GeneralizedNormal Conditional "
    "Around VonMisesFisher Mixing Mixer Layers InvertibleMLP Linear Orthogonal Embedding BestOf AtMost Process "
    "reseeded Batch encoder_input Pairs Clusters Sectors Stored Neighbours Copies CropAndColour "
    "Correlated Mixture Either Halves Beside Folded",
    "zhat.datasets": "Arrays NextRow SameLabel GivenPairs Augmented Loaded recorded Corpus Windows CentreWords CIFAR10 "
    "Patches KITTIMasks KnownFactors DSprites Shapes3D MPI3D Cars3D SmallNORB COIL20 ImageNetX",
    "zhat.scenes": "Scene StillLife Jug Teapot Periodic Room RoomGrid Sprites SpriteGrid SCENES Mesh traversal "
    "drawn_again",
    "zhat.encoders": "mlp residual_mlp Residual conv resnet18 deconv Posterior output OntoBox OntoSphere OntoProduct "
    "Pair Towers ContextSum GPT",
    "zhat.objectives": "Objective InfoNCE Dot NegativeLp LearnedSimilarity CrossEntropy InstanceDiscrimination "
    "Supervised SlowVAE InBatchSoftmax WordSoftmax NegativeSampling NextWord Canonical Candidates AllLabels InBatch "
    "Vocabulary Each from_arrays from_torch from_sklearn from_huggingface "
    "from_log_bilinear from_noise_contrastive from_metric_learning from_contrastive",
    "zhat.kernels": "pairwise_logsumexp hidden_layers last_layer can_normalise normalised_layer",
    "zhat.metrics": "Measure Moments ALIGNABLE Alignment align Agreement r2 pearson spearman Recovery Padded "
    "linear_r2 mcc profile singular_values distance_from_orthogonal Similarity CCA SVCCA PWCCA CKA Procrustes "
    "similarities linear_r2_both_ways consistency divergence Factor dci mig sap",
    "zhat.training": "train load Run Recipe Reached Constant Cosine Plateau Annealed Muon",
    "zhat.experiment": "score run reproduce verdict forget seconds_per_step Budget Row Part Paper Against Latents "
    "Factors Decoded Twin Peers Targets Judge Evidence Verdicts Along WordsAgree LayersAgree TargetsRead Model "
    "pretrained Reading Trained HeadToVectors OffScale HeadOffScale Also Shortest Alike LeastAlike "
    "Chance FirstComponents LinearR2 TwoRoads",
    "zhat.audit": "audit examine audit_all examine_all gathered audit_models audit_all_models Examined Embeddings "
    "embeddings joined Adapter adapt read_adapter Gate read_gate read_baseline decode",
    "zhat.papers": "names paper",
    "zhat.theory": "predict check_head diversity compare_models fit_exponent examine minimum injectivity Theorem "
    "THEOREMS",
    "zhat.report": "write render write_comparison write_audit write_decode write_examined",
    "zhat.testing": "check_space check_distribution check_conditional check_mixing check_process "
    "check_encoder check_objective check_metric",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_the_pinned_ones(name):
    module = import_module(name)
    assert list(module.__all__) == PUBLIC[name].split()
    for member in module.__all__:
        assert getattr(module, member) is not None


def test_unknown_names_are_refused_like_everywhere():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        zhat.nonsense  # noqa: B018


def test_import_is_quick_because_heavy_modules_load_late():
    heavy = "torch numpy scipy sklearn rich typer"
    code = f"import sys, zhat; print(*[m for m in '{heavy}'.split() if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == ""


@pytest.mark.parametrize("name", [n for n in PUBLIC if n not in ("zhat", "zhat.testing")])
def test_public_objects_say_what_they_are(name):
    module = import_module(name)
    for member in module.__all__:
        if callable(getattr(module, member)):
            assert (getattr(module, member).__doc__ or "").strip(), f"{name}.{member} has no docstring"
