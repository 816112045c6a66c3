(** Blocks of rows: how long is (X'X, w·X'y, v·y'y), and how far apart are two of them. *)

Require Import Reals Lra Psatz List.
From Tacit Require Import Sums Formulas Model Optimum.
Import ListNotations.
Local Open Scope R_scope.

Definition gram (rows : list row) (i k : nat) : R := total (fun r => x r i * x r k) rows.
Definition cross (rows : list row) (i : nat) : R := total (fun r => y r * x r i) rows.
Definition lengths (d : nat) (rows : list row) : R := total (fun r => dot d (x r) (x r)) rows.
Definition responses (rows : list row) : R := total (fun r => y r * y r) rows.

Definition frobenius (d : nat) (M : nat -> nat -> R) : R :=
  below d (fun i => below d (fun k => Rsqr (M i k))).

Lemma at_most_one c t : 0 < c -> 0 <= t -> c * (t * t) <= c -> t <= 1.
Proof. intros. assert (t * t <= 1) by (apply Rmult_le_reg_l with c; lra). nra. Qed.

Section Blocks.
Variable d : nat.
Implicit Types P Q : list row.

(** ⟨X'X, Z'Z⟩ and ⟨X'y, Z'u⟩ by the products of rows. *)
Definition overlap P Q : R := total (fun r => total (fun s => Rsqr (dot d (x r) (x s))) Q) P.

Lemma gram_product P Q : below d (fun i => below d (fun k => gram P i k * gram Q i k))
  = overlap P Q.
Proof.
  unfold overlap, gram, dot, below, Rsqr. set (D := seq 0 d).
  pose (f := fun i k r s => x r i * x s i * (x r k * x s k)).
  transitivity (total (fun i => total (fun k => total (fun r => total (f i k r) Q) P) D) D).
  { apply total_ext. intros i _. apply total_ext. intros k _. rewrite total_mult.
    apply total_ext. intros r _. apply total_ext. intros s _. unfold f. ring. }
  transitivity (total (fun i => total (fun r => total (fun k => total (f i k r) Q) D) P) D).
  { apply total_ext. intros i _. apply total_exchange. }
  transitivity (total (fun r => total (fun i => total (fun k => total (f i k r) Q) D) D) P).
  { apply total_exchange. }
  apply total_ext. intros r _.
  transitivity (total (fun i => total (fun s => total (fun k => f i k r s) D) Q) D).
  { apply total_ext. intros i _. apply total_exchange. }
  transitivity (total (fun s => total (fun i => total (fun k => f i k r s) D) D) Q).
  { apply total_exchange. }
  apply total_ext. intros s _. symmetry. apply total_mult.
Qed.

Lemma cross_product P Q :
  below d (fun i => cross P i * cross Q i)
    = total (fun r => total (fun s => y r * y s * dot d (x r) (x s)) Q) P.
Proof.
  unfold cross, dot, below.
  transitivity (total (fun i => total (fun r => total (fun s => y r * y s * (x r i * x s i)) Q) P)
    (seq 0 d)).
  - apply total_ext. intros i _. rewrite total_mult. apply total_ext. intros r _. apply total_ext.
    intros s _. ring.
  - rewrite total_exchange. apply total_ext. intros r _. rewrite total_exchange. apply total_ext.
    intros s _.
    apply total_scale.
Qed.

Lemma overlap_nonneg P Q : 0 <= overlap P Q.
Proof. apply total_nonneg. intros. apply total_nonneg. intros. apply Rle_0_sqr. Qed.

Lemma overlap_bound P Q : overlap P Q <= lengths d P * lengths d Q.
Proof.
  unfold overlap, lengths. rewrite total_mult. apply total_le. intros r _. apply total_le.
  intros s _. apply dot_cauchy.
Qed.

Lemma lengths_nonneg P : 0 <= lengths d P.
Proof. apply total_nonneg. intros. apply dot_nonneg. Qed.

Lemma responses_nonneg P : 0 <= responses P.
Proof. apply total_squares. Qed.

Lemma cross_bound P Q :
  Rsqr (below d (fun i => cross P i * cross Q i)) <= responses P * responses Q * overlap P Q.
Proof.
  rewrite cross_product.
  replace (total (fun r => total (fun s => y r * y s * dot d (x r) (x s)) Q) P)
    with (total (fun rs => y (fst rs) * y (snd rs) * dot d (x (fst rs)) (x (snd rs)))
      (list_prod P Q)) by apply total_pairs.
  eapply Rle_trans; [apply cauchy_schwarz |]. apply Req_le. f_equal.
  - unfold responses. rewrite total_mult, total_pairs.
    apply total_ext. intros r _. apply total_ext. intros s _. cbn. ring.
  - unfold overlap. now rewrite total_pairs.
Qed.

Lemma cross_length P : below d (fun i => Rsqr (cross P i)) <= responses P * lengths d P.
Proof.
  apply Rle_trans with (below d (fun i => responses P * total (fun r => x r i * x r i) P)).
  - apply below_le. intros i _. apply (cauchy_schwarz y (fun r => x r i)).
  - apply Req_le. unfold below. rewrite total_scale. f_equal. unfold lengths, dot, below.
    apply total_exchange.
Qed.

Lemma gram_length P : frobenius d (gram P) <= lengths d P * lengths d P.
Proof. unfold frobenius, Rsqr. rewrite gram_product. apply overlap_bound. Qed.

Lemma legal_person_bounds X Y P :
  0 <= X -> 0 <= Y -> legal_person d X Y P -> 0 <= lengths d P <= X * X /\
    0 <= responses P <= Y * Y.
Proof.
  intros radius bound [long far]. pose proof (lengths_nonneg P) as p.
  pose proof (responses_nonneg P) as a.
  fold (lengths d P) in long. fold (responses P) in far.
  pose proof (sqrt_sqrt _ p). pose proof (sqrt_pos (lengths d P)).
  pose proof (sqrt_sqrt _ a). pose proof (sqrt_pos (responses P)). nra.
Qed.

(** Add-remove: the length of one block. *)
Lemma block_length X Y w v P :
  0 < X -> 0 <= Y -> legal_person d X Y P ->
  frobenius d (gram P) + Rsqr w * below d (fun i => Rsqr (cross P i)) + Rsqr v * Rsqr (responses P)
  <= Rsqr (X * X) * longest reals (w * Y / X) (v * (Y * Y) / (X * X)).
Proof.
  intros radius bound lawful. destruct (legal_person_bounds X Y P ltac:(lra) bound lawful) as [p a].
  pose proof (gram_length P). pose proof (cross_length P).
  assert (Rsqr (X * X) * longest reals (w * Y / X) (v * (Y * Y) / (X * X))
          = Rsqr (X * X) + Rsqr w * (Y * Y * (X * X)) + Rsqr v * Rsqr (Y * Y)) as ->.
  { unfold longest, Rsqr. cbn. field. lra. }
  apply Rplus_le_compat; [apply Rplus_le_compat |].
  - unfold Rsqr. nra.
  - apply Rmult_le_compat_l; [apply Rle_0_sqr |]. nra.
  - apply Rmult_le_compat_l; [apply Rle_0_sqr |]. unfold Rsqr. nra.
Qed.

(** Replace-one: the distance of two blocks. *)
Lemma blocks_apart X Y w v P Q :
  0 < X -> 0 < Y -> legal_person d X Y P -> legal_person d X Y Q ->
  frobenius d (fun i k => gram P i k - gram Q i k)
  + Rsqr w * below d (fun i => Rsqr (cross P i - cross Q i))
      + Rsqr v * Rsqr (responses P - responses Q)
  <= Rsqr (X * X) * diameter reals (w * Y / X) (v * (Y * Y) / (X * X)).
Proof.
  intros radius bound first second.
  destruct (legal_person_bounds X Y P ltac:(lra) ltac:(lra) first) as [p a].
  destruct (legal_person_bounds X Y Q ltac:(lra) ltac:(lra) second) as [q b].
  assert (frobenius d (fun i k => gram P i k - gram Q i k)
          = frobenius d (gram P) + frobenius d (gram Q) - 2 * overlap P Q) as ->.
  { rewrite <- gram_product. unfold frobenius, below. rewrite <- total_scale, <- total_plus,
      <- total_minus.
    apply total_ext. intros i _. rewrite <- total_scale, <- total_plus, <- total_minus.
    apply total_ext. intros k _. unfold Rsqr. ring. }
  assert (below d (fun i => Rsqr (cross P i - cross Q i))
          = below d (fun i => Rsqr (cross P i)) + below d (fun i => Rsqr (cross Q i))
            - 2 * below d (fun i => cross P i * cross Q i)) as ->.
  { unfold below. rewrite <- total_scale, <- total_plus,
      <- total_minus. apply total_ext. intros i _. unfold Rsqr. ring. }
  pose proof (gram_length P) as gramP. pose proof (gram_length Q) as gramQ.
  pose proof (cross_length P) as crossP. pose proof (cross_length Q) as crossQ.
  pose proof (cross_bound P Q) as mixed. pose proof (overlap_bound P Q) as together.
  pose proof (overlap_nonneg P Q) as positive.
  set (N := overlap P Q) in *. set (C := below d (fun i => cross P i * cross Q i)) in *.
  set (s := sqrt N / (X * X)). set (A := sqrt (responses P) / Y). set (B := sqrt (responses Q) / Y).
  assert (N = Rsqr (X * X) * (s * s)) as sN.
  { unfold s. transitivity (sqrt N * sqrt N); [now rewrite sqrt_sqrt | unfold Rsqr; field; lra]. }
  assert (responses P = Y * Y * (A * A)) as sA.
  { unfold A. transitivity (sqrt (responses P) * sqrt (responses P));
      [rewrite sqrt_sqrt; lra | field; lra]. }
  assert (responses Q = Y * Y * (B * B)) as sB.
  { unfold B. transitivity (sqrt (responses Q) * sqrt (responses Q));
      [rewrite sqrt_sqrt; lra | field; lra]. }
  assert (0 < X * X) by nra. assert (0 < Y * Y) by nra.
  assert (0 <= s) by (apply Rmult_le_pos; [apply sqrt_pos | left; now apply Rinv_0_lt_compat]).
  assert (0 <= A) by (apply Rmult_le_pos; [apply sqrt_pos | left; now apply Rinv_0_lt_compat]).
  assert (0 <= B) by (apply Rmult_le_pos; [apply sqrt_pos | left; now apply Rinv_0_lt_compat]).
  clearbody s A B C N.
  assert (A <= 1) by (apply (at_most_one (Y * Y)); lra).
  assert (B <= 1) by (apply (at_most_one (Y * Y)); lra).
  assert (0 < Rsqr (X * X)) by (unfold Rsqr; nra).
  assert (N <= Rsqr (X * X)) by (eapply Rle_trans; [exact together |]; apply Rmult_le_compat; lra).
  assert (s <= 1) by (apply (at_most_one (Rsqr (X * X))); lra).
  assert (- C <= Y * Y * (X * X) * (A * B * s)) as against.
  { assert (0 <= Y * Y * (X * X) * (A * B * s)) by (repeat apply Rmult_le_pos; lra).
    assert (Rsqr C <= Rsqr (Y * Y * (X * X) * (A * B * s))) as squares.
    { eapply Rle_trans; [exact mixed |]. rewrite sA, sB, sN. apply Req_le. unfold Rsqr. ring. }
    apply Rsqr_le_abs_0 in squares.
    rewrite (Rabs_right (Y * Y * (X * X) * (A * B * s))) in squares by lra.
    pose proof (Rle_abs (- C)) as sign. rewrite Rabs_Ropp in sign. lra. }
  pose proof (spread_bound (w * Y / X) (v * (Y * Y) / (X * X)) s A B ltac:(lra) ltac:(lra)
    ltac:(lra)) as heart.
  eapply Rle_trans; [| apply Rmult_le_compat_l; [lra | exact heart]].
  assert (Rsqr (X * X) * spread (w * Y / X) (v * (Y * Y) / (X * X)) s A B
          = 2 * Rsqr (X * X) - 2 * N
            + Rsqr w * (Y * Y * (X * X) * (A * A) + Y * Y * (X * X) * (B * B)
                + 2 * (Y * Y * (X * X) * (A * B * s)))
            + Rsqr v * Rsqr (responses P - responses Q)) as ->.
  { rewrite sN, sA, sB. unfold spread, Rsqr. field. lra. }
  apply Rplus_le_compat_r. apply Rplus_le_compat.
  { assert (lengths d P * lengths d P <= Rsqr (X * X)) by (apply Rmult_le_compat; lra).
    assert (lengths d Q * lengths d Q <= Rsqr (X * X)) by (apply Rmult_le_compat; lra). lra. }
  apply Rmult_le_compat_l; [apply Rle_0_sqr |].
  assert (responses P * lengths d P <= responses P * (X * X)) by (apply Rmult_le_compat_l; lra).
  assert (responses Q * lengths d Q <= responses Q * (X * X)) by (apply Rmult_le_compat_l; lra).
  rewrite sA in * |-. rewrite sB in * |-. lra.
Qed.
End Blocks.
